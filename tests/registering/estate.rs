//! A monorepo whose apps are built and not registered, and the program that registers them, with Jenkins over HTTP.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use stagewright::producers::Producers;

use crate::jenkins::{Build, JenkinsDouble, TOKEN, USER};
use crate::repositories::repository;

/// The file of producers at first.
pub const FILE: &str = "# Who publishes.\n\nproducers:\n  # -- deploy --\n  - id: first-deploy\n    repo: example/First\n    jenkinsJob: AaC/First\n";

/// The forge of plain git repositories.
pub const GIT: &str = "{git: {root: git, known_as: https://github.com/example}}";

/// A monorepo with `apps` apps, none of them registered, and a green build of them all.
pub struct Estate {
    folder: tempfile::TempDir,
    pub double: JenkinsDouble,
}

impl Estate {
    pub fn new(apps: usize) -> Estate {
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
        let estate = Estate { folder, double };
        estate.settings(GIT);
        estate
    }

    /// Writes the settings, with this forge.
    pub fn settings(&self, forge: &str) {
        self.settings_with(forge, &format!("{}/", self.double.url()));
    }

    /// Writes the settings, with Jenkins at this address.
    pub fn settings_with(&self, forge: &str, jenkins: &str) {
        let settings = format!(
            "forge: {forge}\nregistry: {{repo: ArgoCDDeploy}}\nstate: {{repo: TerraformState}}\nrunner: local\nproducers: {{repo: Architecture}}\njenkins: {{url: '{jenkins}', user: {USER}, token_env: JENKINS_TOKEN}}\n"
        );
        std::fs::write(self.path().join("stagewright.yaml"), settings).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn start(&self, app: usize, arguments: &[&str]) -> Child {
        let (id, path) = (format!("app{app}-deploy"), format!("app{app}"));
        let entry = ["--repo", "example/Many", "--jenkins-job", "AaC/Many"];
        let mut command = self.program();
        command.args(["--id", &id, "--app-path", &path]);
        command.args(entry).args(arguments).spawn().unwrap()
    }

    /// The program, in the estate's folder, with the settings there.
    pub fn program(&self) -> Command {
        let here = self.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stagewright-register-producer"));
        command
            .current_dir(here)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", here)
            .env("JENKINS_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, app: usize, arguments: &[&str]) -> (i32, String) {
        ended(self.start(app, arguments).wait_with_output().unwrap())
    }

    /// Runs the program with these arguments alone.
    pub fn ask(&self, arguments: &[&str]) -> (i32, String) {
        ended(self.program().args(arguments).output().unwrap())
    }

    pub fn file(&self) -> String {
        shown(self.path(), &["show", "main:pipeline-producers.yaml"])
    }

    /// Registers all of them at once; every one must land, by a commit of its own.
    pub fn all_land(&self, apps: usize) {
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
        let commits = shown(self.path(), &["log", "--format=%s", "main"]);
        assert_eq!(commits.lines().count(), apps + 1, "{commits}");
    }
}

pub fn ended(output: Output) -> (i32, String) {
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), said)
}

pub fn shown(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder.join("git/Architecture.git"))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}
