//! Registrations at the same time, by the program itself, with Jenkins over HTTP.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use stagewright::producers::Producers;

use crate::jenkins::{Build, Fault, JenkinsDouble, TOKEN, USER};
use crate::repositories::repository;

const FILE: &str = "# Who publishes.\n\nproducers:\n  # -- deploy --\n  - id: first-deploy\n    repo: example/First\n    jenkinsJob: AaC/First\n";

/// A monorepo with `apps` apps, none of them registered, and a green build of them all.
struct Estate {
    folder: tempfile::TempDir,
    double: JenkinsDouble,
}

impl Estate {
    fn new(apps: usize) -> Estate {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join("git");
        repository(
            &git.join("Architecture.git"),
            "main",
            &[("pipeline-producers.yaml", FILE)],
        );
        repository(
            &git.join("TerraformState.git"),
            "main",
            &[("README.md", "states\n")],
        );
        let mut registry = "apps:\n".to_owned();
        let mut files = vec![(
            ".architecturerc".to_owned(),
            "generated: true\nsources: [\"{path}/chart/\"]\ninstructions: none\n".to_owned(),
        )];
        let mut artifacts = Vec::new();
        for app in 0..apps {
            writeln!(registry, "  app{app}:\n    repo: https://github.com/example/Many.git\n    path: app{app}\n    stages: {{prd: {{}}}}").unwrap();
            files.push((
                format!("app{app}/chart/Chart.yaml"),
                format!("name: app{app}\n"),
            ));
            let id = format!("app{app}-deploy");
            artifacts.push((
                format!("app{app}/docs/architecture/{id}.yaml"),
                format!("producer: {id}\n"),
            ));
        }
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(f, c)| (f.as_str(), c.as_str()))
            .collect();
        repository(&git.join("Many.git"), "main", &files);
        repository(
            &git.join("ArgoCDDeploy.git"),
            "main",
            &[("releases/values.yaml", &registry)],
        );
        let double = JenkinsDouble::serve();
        let green = Build {
            number: 3,
            result: "SUCCESS",
            artifacts,
        };
        double.job("AaC/Many", &[green]);
        let settings = format!(
            "forge: {{git: {{root: git, known_as: https://github.com/example}}}}\nregistry: {{repo: ArgoCDDeploy}}\nstate: {{repo: TerraformState}}\nrunner: local\nproducers: {{repo: Architecture}}\njenkins: {{url: {}/, user: {USER}, token_env: JENKINS_TOKEN}}\n",
            double.url()
        );
        std::fs::write(folder.path().join("stagewright.yaml"), settings).unwrap();
        Estate { folder, double }
    }

    fn start(&self, app: usize, arguments: &[&str]) -> Child {
        let here = self.folder.path();
        Command::new(env!("CARGO_BIN_EXE_stagewright-register-producer"))
            .args([
                "--id",
                &format!("app{app}-deploy"),
                "--app-path",
                &format!("app{app}"),
            ])
            .args(["--repo", "example/Many", "--jenkins-job", "AaC/Many"])
            .args(arguments)
            .current_dir(here)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", here)
            .env("JENKINS_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(&self, app: usize, arguments: &[&str]) -> (i32, String) {
        ended(self.start(app, arguments).wait_with_output().unwrap())
    }

    fn file(&self) -> String {
        shown(
            self.folder.path(),
            &["show", "main:pipeline-producers.yaml"],
        )
    }

    /// Registers all of them at once; every one must land, by a commit of its own.
    fn all_land(&self, apps: usize) {
        let runs: Vec<Child> = (0..apps).map(|app| self.start(app, &[])).collect();
        for run in runs {
            let (code, said) = ended(run.wait_with_output().unwrap());
            assert_eq!(code, 0, "{said}");
            assert!(said.contains("\nRegistered: app"), "{said}");
            assert!(!said.contains("warning: "), "{said}");
        }
        let file = self.file();
        assert!(file.starts_with(FILE), "{file}");
        let ids = Producers::read(&file, "it").unwrap();
        let mut ids: Vec<&str> = ids.all().map(|producer| producer.id.as_str()).collect();
        ids.sort_unstable();
        let mut wanted: Vec<String> = (0..apps).map(|app| format!("app{app}-deploy")).collect();
        wanted.push("first-deploy".to_owned());
        wanted.sort_unstable();
        assert_eq!(ids, wanted);
        let commits = shown(self.folder.path(), &["log", "--format=%s", "main"]);
        assert_eq!(commits.lines().count(), apps + 1, "{commits}");
    }
}

fn ended(output: Output) -> (i32, String) {
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), said)
}

fn shown(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder.join("git/Architecture.git"))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn two_registrations_at_once_both_land() {
    Estate::new(2).all_land(2);
}

#[test]
fn twenty_registrations_at_once_all_land() {
    Estate::new(20).all_land(20);
}

#[test]
fn a_second_run_of_the_same_does_nothing_and_one_after_a_kill_goes_on() {
    let estate = Estate::new(1);
    let mut killed = estate.start(0, &[]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (code, said) = estate.run(0, &["--build", "7", "--requested-by", "Ada"]);
    assert_eq!(code, 0, "{said}");
    let message = shown(estate.folder.path(), &["log", "-1", "--format=%B", "main"]);
    let url = format!(
        "{}/job/AaC/job/Many/3/artifact/app0/docs/architecture/app0-deploy.yaml",
        estate.double.url()
    );
    // Of `producer: app0-deploy` and its line end, by sha256sum.
    let sha = "364f673205f63498741b12fbe73421c52c4478cc6f8e8af0e75b3f31e0c0efb5";
    assert_eq!(
        message.trim_end(),
        format!(
            "Register app0-deploy\n\nAaC/Many has archived app0/docs/architecture/app0-deploy.yaml in its green build 3.\n\nBuild: 7\nArtifact: {url}\nArtifact-SHA-256: {sha}\nRequested-By: Ada"
        )
    );
    let before = shown(estate.folder.path(), &["rev-parse", "main"]);
    let (code, said) = estate.run(0, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("nothing, the file says it already"), "{said}");
    assert_eq!(shown(estate.folder.path(), &["rev-parse", "main"]), before);
}

#[test]
fn a_jenkins_that_fails_ends_with_10_and_one_that_lets_nobody_in_with_1() {
    let estate = Estate::new(1);
    for (fault, code) in [(Fault::Status(503), 10), (Fault::Status(401), 1)] {
        estate.double.fail(&[fault; 3]);
        let (ended, said) = estate.run(0, &[]);
        assert_eq!(ended, code, "{said}");
        assert!(!said.contains(TOKEN), "{said}");
        assert_eq!(estate.file(), FILE);
        estate.double.fail_no_more();
    }
}
