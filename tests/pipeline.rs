//! The example pipelines. Those for Jenkins are carried out as Jenkins would by `tests/pipeline/`, their shell steps for real, in the
//! sandbox; `workflow` has the one for GitHub Actions.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/estate.rs"]
mod estate;
#[path = "support/tools.rs"]
mod tools;
#[path = "pipeline/workflow.rs"]
mod workflow;

use std::path::{Path, PathBuf};
use std::process::Output;

use estate::Estate;
use serde_json::{Value, json};

const DESTROY: &str = "examples/jenkins/Jenkinsfile.destroy-stage";
const PLAN: &str = "examples/jenkins/Jenkinsfile.plan";
const KEY: &str = "argocd/FieldnotesDeploy/demo/terraform.tfstate";
const NOT_CONFIRMED: &str = "Not confirmed: nothing was destroyed.";

/// A Jenkins with one agent, on which the sandbox's estate is at hand.
struct Jenkins {
    estate: Estate,
    groovy: PathBuf,
}

/// What came of a build.
struct Build {
    console: String,
    outcome: Value,
}

/// How a build is started, and what happens to it.
struct Start {
    parameters: Value,
    answer: Value,
    stop_at: Value,
}

impl Start {
    fn with(parameters: Value) -> Start {
        Start {
            parameters,
            answer: Value::Null,
            stop_at: Value::Null,
        }
    }

    fn of_the_retired_stage() -> Start {
        Start::with(
            json!({ "REPO": "FieldnotesDeploy", "STAGE": "demo", "NAMESPACE": "fieldnotes-demo" }),
        )
    }

    fn answered(mut self, answer: Value) -> Start {
        self.answer = answer;
        self
    }

    fn confirmed(self) -> Start {
        self.answered(json!({ "user": "grace", "groups": ["operators"] }))
    }

    fn stopped_at(mut self, line: &str) -> Start {
        self.stop_at = line.into();
        self
    }
}

/// Puts the programs where the estate's own look for them first, made to work in its sandbox.
fn install(estate: &Estate) -> PathBuf {
    let bin = estate.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for (name, program) in [
        (
            "stagewright-destroy-stage",
            env!("CARGO_BIN_EXE_stagewright-destroy-stage"),
        ),
        ("stagewright-plan", env!("CARGO_BIN_EXE_stagewright-plan")),
    ] {
        let sandbox = estate.path().join("sandbox");
        let sandbox = sandbox.display();
        let text = format!("#!/bin/sh\nexec '{program}' \"$@\" '--sandbox={sandbox}'\n");
        let file = bin.join(name);
        std::fs::write(&file, text).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, executable).unwrap();
    }
    bin
}

/// What git says in one of the sandbox's repositories.
fn git(estate: &Estate, repository: &str, arguments: &[&str]) -> String {
    let mut git = estate.program("git");
    git.arg("--git-dir").arg(estate.repository(repository));
    let output = git.args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

impl Jenkins {
    fn new() -> Option<Jenkins> {
        let find = |program| {
            let found = stagewright::child::find_program(Path::new(program));
            tools::found_or_left_out(program, "STAGEWRIGHT_TOOLS_REQUIRED", found)
        };
        find("java")?;
        let groovy = find("groovy")?;
        let estate = Estate::unpack();
        install(&estate);
        Some(Jenkins { estate, groovy })
    }

    fn run(&self, pipeline: &Path, start: &Start) -> Output {
        let home = self.estate.path();
        let path = std::env::var("PATH").unwrap();
        let scenario = json!({
            "build": { "number": 7, "url": "https://ci.example.org/job/destroy-stage/7/" },
            "cause": { "_class": "hudson.model.Cause$UserIdCause", "userId": "ada", "shortDescription": "Started by user Ada" },
            "labels": ["terraform"],
            "parameters": start.parameters,
            "answer": start.answer,
            "stop_at": start.stop_at,
            "workspace": home.join("workspace"),
            "archive": home.join("archive"),
            "outcome": home.join("outcome.json"),
            "environment": {
                "PATH": format!("{}:{path}", home.join("bin").display()),
                "HOME": home, "TMPDIR": home.join("tmp"), "GIT_CONFIG_NOSYSTEM": "1",
            },
            "credentials": {
                "stagewright-read": { "kind": "usernamePassword", "username": "reader", "password": "secret-of-reader" },
                "stagewright-write": { "kind": "usernamePassword", "username": "writer", "password": "secret-of-writer" },
                "stagewright-age-key": { "kind": "file", "file": home.join("age-key") },
            },
        });
        let file = home.join("scenario.json");
        std::fs::write(&file, scenario.to_string()).unwrap();
        let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut groovy = self.estate.program(self.groovy.to_str().unwrap());
        groovy
            .env("CLASSPATH", tree.join("tests/pipeline"))
            // It runs for seconds: compiling it well costs more than it gives.
            .env("JAVA_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .arg(tree.join("tests/pipeline/jenkins.groovy"))
            .arg(pipeline)
            .arg(&file)
            .output()
            .unwrap()
    }

    fn build(&self, pipeline: &str, start: &Start) -> Build {
        let pipeline = Path::new(env!("CARGO_MANIFEST_DIR")).join(pipeline);
        let output = self.run(&pipeline, start);
        let console = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{console}{said}");
        assert!(!console.contains("secret-of-"), "{console}");
        let outcome = std::fs::read_to_string(self.estate.path().join("outcome.json")).unwrap();
        Build {
            console,
            outcome: serde_json::from_str(&outcome).unwrap(),
        }
    }

    fn git(&self, repository: &str, arguments: &[&str]) -> String {
        git(&self.estate, repository, arguments)
    }

    /// Every ref of every repository that a destroy writes to.
    fn refs(&self) -> String {
        let refs = |name| self.git(name, &["for-each-ref"]);
        refs("TerraformState") + &refs("FieldnotesDeploy") + &refs("PlatformDeploy")
    }

    /// The message of the head of main.
    fn message(&self, repository: &str) -> String {
        self.git(repository, &["log", "-1", "--format=%B", "main"])
    }

    /// How many commits of main say so in their first line.
    fn commits(&self, repository: &str, subject: &str) -> usize {
        let all = self.git(repository, &["log", "--format=%s", "main"]);
        all.lines().filter(|line| line.starts_with(subject)).count()
    }

    fn is_destroyed(&self) -> bool {
        let has = |name, path| !self.git(name, &["ls-tree", "main", path]).is_empty();
        !has("TerraformState", KEY) && !has("FieldnotesDeploy", "config/demo")
    }
}

impl Build {
    fn result(&self) -> &str {
        self.outcome["result"].as_str().unwrap()
    }

    fn description(&self) -> &str {
        self.outcome["description"].as_str().unwrap_or_default()
    }

    fn texts(&self, pointer: &str) -> Vec<&str> {
        let all = self.outcome.pointer(pointer).unwrap().as_array().unwrap();
        all.iter().map(|text| text.as_str().unwrap()).collect()
    }

    /// The steps of the program that were run, by their labels.
    fn ran(&self) -> Vec<&str> {
        let steps = self.outcome["steps"].as_array().unwrap().iter();
        steps
            .filter_map(|step| step["label"].as_str())
            .map(|label| label.strip_prefix("stagewright-destroy-stage ").unwrap())
            .collect()
    }

    fn last_lines(&self) -> [&str; 2] {
        let mut lines = self.console.lines().rev();
        let last = lines.next().unwrap();
        [lines.next().unwrap(), last]
    }
}

#[test]
fn a_confirmed_destroy_makes_both_commits_and_names_who_asked_and_who_approved() {
    let Some(jenkins) = Jenkins::new() else {
        return;
    };
    let build = jenkins.build(DESTROY, &Start::of_the_retired_stage().confirmed());
    assert_eq!(build.result(), "SUCCESS", "{}", build.console);
    assert_eq!(build.description(), "destroyed: FieldnotesDeploy demo");
    assert!(jenkins.is_destroyed());
    for repository in ["TerraformState", "FieldnotesDeploy"] {
        let message = jenkins.message(repository);
        for trailer in [
            "Digest: sha256:",
            "Build: https://ci.example.org/job/destroy-stage/7/\n",
            "Requested-By: ada\n",
            "Approved-By: grace\n",
        ] {
            assert!(message.contains(&format!("\n{trailer}")), "{message}");
        }
    }
    assert!(jenkins.message("FieldnotesDeploy").starts_with(
        "Remove config/demo/: demo destroyed by https://ci.example.org/job/destroy-stage/7/\n"
    ));

    // The question.
    let asked = &build.outcome["asked"];
    let message = asked["message"].as_str().unwrap();
    for part in [
        "Destroy what the plan above shows for demo of FieldnotesDeploy?\n",
        "\n3 object(s) in the state: 3 destroyed, ",
        "\nNothing of it is known to hold data.\n",
        "\nDigest sha256:",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(asked["submitter"], "operators");

    // What ran with which credentials and time limits.
    let steps: Vec<(&str, &str, bool)> = build.outcome["steps"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1) // makes the folder
        .map(|step| {
            let limits = step["timeouts"].as_array().unwrap();
            assert!(limits.iter().all(|limit| limit == "60 MINUTES"));
            (
                step["stage"].as_str().unwrap(),
                step["credentials"][0].as_str().unwrap(),
                !limits.is_empty(),
            )
        })
        .collect();
    assert_eq!(
        steps,
        [
            ("Check stage is undeployed", "stagewright-read", false),
            ("Plan destroy", "stagewright-read", true),
            (
                "Destroy Terraform resources and state",
                "stagewright-write",
                false
            ),
            ("Remove config folder", "stagewright-write", false),
        ]
    );
    assert_eq!(asked["timeouts"], json!(["60 MINUTES"]));
    let mut archived = build.texts("/archived");
    archived.sort_unstable();
    assert_eq!(
        archived,
        [
            "destroy/check.json",
            "destroy/destroy.json",
            "destroy/destroyed.html",
            "destroy/preview.json",
            "destroy/record.json",
            "destroy/remove-config.json",
            "destroy/report.html"
        ]
    );
    assert_eq!(
        build.texts("/options"),
        ["disableConcurrentBuilds", "disableRestartFromStage"]
    );
    // A record confirms, so none is left.
    assert!(!jenkins.estate.path().join("workspace/destroy").exists());

    let again = jenkins.build(DESTROY, &Start::of_the_retired_stage());
    assert_eq!(again.result(), "SUCCESS", "{}", again.console);
    assert_eq!(again.description(), "nothing left: FieldnotesDeploy demo");
    assert_eq!(again.ran(), ["check", "preview"]);
}

#[test]
fn what_is_declined_stopped_or_left_until_its_time_is_over_changes_nothing_and_ends_not_built() {
    let Some(jenkins) = Jenkins::new() else {
        return;
    };
    let before = jenkins.refs();
    for answer in ["decline", "stop", "timeout"] {
        let build = jenkins.build(
            DESTROY,
            &Start::of_the_retired_stage().answered(answer.into()),
        );
        assert_eq!(build.result(), "NOT_BUILT", "{answer}: {}", build.console);
        assert_eq!(build.description(), "declined: FieldnotesDeploy demo");
        assert!(build.console.contains(&format!("\n{NOT_CONFIRMED}\n")));
        assert_eq!(
            build.last_lines(),
            [
                format!("ERROR: {NOT_CONFIRMED}").as_str(),
                "Finished: NOT_BUILT"
            ]
        );
        for marker in ["Rejected by", "Aborted by", "Timeout has been exceeded"] {
            assert!(!build.console.contains(marker), "{}", build.console);
        }
        assert_eq!(build.ran(), ["check", "preview"], "{answer}");
        assert!(build.texts("/archived").contains(&"destroy/record.json"));
        assert_eq!(jenkins.refs(), before, "{answer}");
    }
}

#[test]
fn an_answer_that_names_nobody_destroys_nothing() {
    let Some(jenkins) = Jenkins::new() else {
        return;
    };
    let before = jenkins.refs();
    let answer = json!({ "user": "grace", "groups": ["operators"], "empty": true });
    let build = jenkins.build(DESTROY, &Start::of_the_retired_stage().answered(answer));
    assert_eq!(build.result(), "FAILURE", "{}", build.console);
    assert!(build.console.contains("ERROR: The answer names nobody"));
    assert_eq!(build.ran(), ["check", "preview"]);
    assert_eq!(jenkins.refs(), before);
}

#[test]
fn a_stage_that_is_still_deployed_fails_the_build_with_the_guards_sentence() {
    let Some(jenkins) = Jenkins::new() else {
        return;
    };
    let before = jenkins.refs();
    let deployed = Start::with(json!({ "REPO": "FieldnotesDeploy", "STAGE": "prd" }));
    let build = jenkins.build(DESTROY, &deployed);
    assert_eq!(build.result(), "FAILURE", "{}", build.console);
    assert_eq!(build.description(), "FieldnotesDeploy prd");
    let [error, _] = build.last_lines();
    assert!(
        error.starts_with("ERROR: prd of example/FieldnotesDeploy is still deployed, by "),
        "{error}"
    );
    assert!(error.contains("This build cleans up after an undeployed stage"));
    assert_eq!(build.ran(), ["check"]);
    assert_eq!(jenkins.refs(), before);
}

#[test]
fn a_build_without_parameters_runs_nothing() {
    let Some(jenkins) = Jenkins::new() else {
        return;
    };
    // The first build of a job, and one that a trigger started.
    for parameters in [Value::Null, json!({})] {
        let build = jenkins.build(DESTROY, &Start::with(parameters));
        assert_eq!(build.result(), "NOT_BUILT", "{}", build.console);
        assert_eq!(build.outcome["steps"], json!([]));
        let [error, _] = build.last_lines();
        assert!(error.ends_with("start it by Build with Parameters."));
    }
}

#[test]
fn what_is_typed_into_a_parameter_is_no_program() {
    let Some(jenkins) = Jenkins::new() else {
        return;
    };
    let hostile = "$(touch here) `touch here`; touch here";
    let cases: [&[&str]; 3] = [
        &["REPO", "STAGE", "APP_PATH"],
        &["NOT_DEPLOYING"],
        &["NAMESPACE"],
    ];
    for names in cases {
        let mut start = Start::of_the_retired_stage();
        for name in names {
            start.parameters[name] = hostile.into();
        }
        let build = jenkins.build(DESTROY, &start);
        assert_eq!(build.result(), "FAILURE", "{names:?}: {}", build.console);
        let written = jenkins.estate.path().join("workspace/here");
        assert!(!written.exists(), "{names:?}: {}", build.console);
        assert!(build.outcome["asked"].is_null(), "{names:?}");
    }
}

#[test]
fn the_parameters_reach_the_program() {
    let Some(jenkins) = Jenkins::new() else {
        return;
    };
    // Provisioners that would not run, in the root of an app of a monorepo.
    jenkins.estate.commit("PlatformDeploy", |files| {
        let text = r#"resource "terraform_data" "oidc_client" {
  provisioner "local-exec" {
    when    = destroy
    command = "echo cleaned"
  }
}
"#;
        std::fs::write(files.join("headlamp/terraform/main.tf"), text).unwrap();
    });
    let mut start = Start::with(
        json!({ "REPO": "PlatformDeploy", "APP_PATH": "headlamp", "STAGE": "demo", "NAMESPACE": "headlamp-demo" }),
    )
    .answered("decline".into());
    let refused = jenkins.build(DESTROY, &start);
    assert_eq!(refused.result(), "FAILURE", "{}", refused.console);
    let [error, _] = refused.last_lines();
    assert!(error.contains("--skip-destroy-provisioners"), "{error}");

    start.parameters["SKIP_DESTROY_PROVISIONERS"] = true.into();
    let build = jenkins.build(DESTROY, &start);
    assert_eq!(
        build.description(),
        "declined: PlatformDeploy/headlamp demo"
    );
    let message = build.outcome["asked"]["message"].as_str().unwrap();
    assert!(
        message.starts_with(
            "Destroy what the plan above shows for demo of PlatformDeploy/headlamp?\n"
        ),
        "{message}"
    );
}

#[test]
fn a_build_that_was_stopped_halfway_is_finished_by_one_with_the_same_parameters() {
    // Before presync runs, and when all that is left is the end of the program and the config folder.
    for line in ["(previewed)", "presync: destroyed what was confirmed"] {
        let Some(jenkins) = Jenkins::new() else {
            return;
        };
        let start = Start::of_the_retired_stage().confirmed().stopped_at(line);
        let stopped = jenkins.build(DESTROY, &start);
        assert_eq!(stopped.result(), "ABORTED", "{line}: {}", stopped.console);
        assert!(stopped.texts("/archived").contains(&"destroy/record.json"));

        let again = jenkins.build(DESTROY, &Start::of_the_retired_stage().confirmed());
        assert_eq!(again.result(), "SUCCESS", "{line}: {}", again.console);
        assert!(jenkins.is_destroyed(), "{line}: {}", again.console);
        let state = jenkins.commits("TerraformState", "Remove argocd/FieldnotesDeploy/demo/");
        let config = jenkins.commits("FieldnotesDeploy", "Remove config/demo/");
        assert_eq!((state, config), (1, 1), "{line}");
    }
}

#[test]
fn the_plan_is_unstable_where_it_carries_changes() {
    let Some(jenkins) = Jenkins::new() else {
        return;
    };
    for (stage, result) in [("dev", "UNSTABLE"), ("prd", "SUCCESS")] {
        let start = Start::with(json!({ "REPO": "FieldnotesDeploy", "STAGE": stage }));
        let build = jenkins.build(PLAN, &start);
        assert_eq!(build.result(), result, "{}", build.console);
        let mut archived = build.texts("/archived");
        archived.sort_unstable();
        assert_eq!(
            archived,
            ["plan/plan.json", "plan/plan.log", "plan/report.html"]
        );
    }
    let start = Start::with(json!({ "REPO": "FieldnotesDeploy", "STAGE": "nowhere" }));
    assert_eq!(jenkins.build(PLAN, &start).result(), "FAILURE");
}

#[test]
fn the_harness_refuses_what_it_does_not_know_and_what_jenkins_would_refuse() {
    let Some(jenkins) = Jenkins::new() else {
        return;
    };
    let stage = |steps: &str| {
        format!(
            "pipeline {{ agent {{ label 'terraform' }}; stages {{ stage('A') {{ steps {{\n{steps}\n}} }} }} }}"
        )
    };
    let cases = [
        (stage("slackSend 'hello'"), "no step slackSend"),
        (stage("if (true) { echo 'hello' }"), "put it into script"),
        (stage("echo currentBuild.rawBuild"), "currentBuild.rawBuild"),
        (
            stage("echo 'hello'").replace("stages", "triggers { cron('@daily') }; stages"),
            "no triggers in a PipelineBlock",
        ),
        (
            stage("sh script: 'true', encoding: 'UTF-8'"),
            "[encoding] of sh",
        ),
    ];
    for (text, said) in cases {
        let file = jenkins.estate.path().join("Jenkinsfile");
        std::fs::write(&file, &text).unwrap();
        let output = jenkins.run(&file, &Start::with(Value::Null));
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(70), "{text}: {error}");
        assert!(error.contains(said), "{text}: {error}");
    }
}
