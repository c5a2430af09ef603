//! The example workflow for GitHub Actions: its shell steps, one after the other, for real in the sandbox. That the file is a workflow
//! at all, actionlint looks at in `tests/run`.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::estate::Estate;
use crate::{git, install, tools};

const WORKFLOW: &str = include_str!("../../examples/github-actions/destroy-stage.yaml");

/// Answers one request for the run's approvals, as GitHub's API does.
fn approvals() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let length = client.read(&mut request).unwrap();
        let request = String::from_utf8_lossy(&request[..length]);
        let found = request.starts_with("GET /repos/example/estate/actions/runs/99/approvals ")
            && request.contains("\r\nAuthorization: Bearer token-of-the-run\r\n");
        let body = r#"[{"state": "approved", "comment": "", "user": {"login": "grace"}},
            {"state": "rejected", "comment": "", "user": {"login": "henry"}}]"#;
        let status = if found { "200 OK" } else { "404 Not Found" };
        let length = body.len();
        write!(
            client,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
    });
    url
}

/// A run of the workflow.
struct Run {
    estate: Estate,
    workflow: Value,
    known: BTreeMap<&'static str, String>,
    environment: BTreeMap<String, String>,
}

impl Run {
    fn new(stage: &str, not_deploying: &str) -> Run {
        let estate = Estate::unpack();
        let bin = install(&estate);
        let known = [
            ("inputs.repo", "FieldnotesDeploy"),
            ("inputs.app_path", ""),
            ("inputs.stage", stage),
            ("inputs.namespace", "fieldnotes-demo"),
            ("inputs.not_deploying", not_deploying),
            ("inputs.accept_gone", "false"),
            ("inputs.accept_no_state", "false"),
            ("inputs.skip_destroy_provisioners", "false"),
            ("inputs.leave_behind", "false"),
            ("github.run_number", "7"),
            ("github.run_id", "99"),
            ("github.server_url", "https://github.com"),
            ("github.repository", "example/estate"),
            ("github.actor", "ada"),
            ("github.token", "token-of-the-run"),
            ("secrets.READ_USERNAME", "reader"),
            ("secrets.READ_PASSWORD", "secret-of-reader"),
            ("secrets.WRITE_USERNAME", "writer"),
            ("secrets.WRITE_PASSWORD", "secret-of-writer"),
            ("secrets.STATE_AGE_KEY", ""),
        ];
        let path = std::env::var("PATH").unwrap();
        let own = [
            ("PATH", format!("{}:{path}", bin.display())),
            ("GITHUB_API_URL", approvals()),
            ("GITHUB_REPOSITORY", "example/estate".to_owned()),
            ("GITHUB_RUN_ID", "99".to_owned()),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let mut run = Run {
            estate,
            workflow: serde_yaml::from_str(WORKFLOW).unwrap(),
            known: known
                .map(|(name, value)| (name, value.to_owned()))
                .into_iter()
                .collect(),
            environment: own.into_iter().collect(),
        };
        for name in ["GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"] {
            let file = run.estate.path().join(name);
            std::fs::write(&file, "").unwrap();
            run.environment
                .insert(name.to_owned(), file.display().to_string());
        }
        run
    }

    /// The variables below `env`, with what GitHub puts into them.
    fn variables(&self, of: &Value) -> BTreeMap<String, String> {
        let Some(all) = of["env"].as_object() else {
            return BTreeMap::new();
        };
        let value = |text: &Value| -> String {
            let mut parts = text.as_str().unwrap().split("${{ ");
            let mut value = parts.next().unwrap().to_owned();
            for part in parts {
                let (name, rest) = part.split_once(" }}").unwrap();
                value.push_str(self.known.get(name).unwrap());
                value.push_str(rest);
            }
            value
        };
        all.iter()
            .map(|(name, text)| (name.clone(), value(text)))
            .collect()
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.estate.path().join(name)).unwrap()
    }

    /// Runs a job's shell steps to the first that fails, and then those that always run. The last exit code that is not 0.
    fn job(&mut self, name: &str) -> i32 {
        let job = self.workflow["jobs"][name].clone();
        let mut code = 0;
        for step in job["steps"].as_array().unwrap() {
            let Some(script) = step["run"].as_str() else {
                let known = [
                    "actions/checkout@",
                    "actions/upload-artifact@",
                    "actions/download-artifact@",
                ];
                let uses = step["uses"].as_str().unwrap();
                assert!(
                    known.iter().any(|action| uses.starts_with(action)),
                    "{uses}"
                );
                continue;
            };
            assert!(
                !script.contains("${{"),
                "what was typed would be a program: {script}"
            );
            if code != 0 && step["if"] != "always()" {
                continue;
            }
            let mut shell = self.estate.program("bash");
            shell
                .args(["-e", "-c", script])
                .envs(&self.environment)
                .envs(self.variables(&self.workflow))
                .envs(self.variables(&job))
                .envs(self.variables(step));
            let output = shell.output().unwrap();
            if !output.status.success() {
                code = output.status.code().unwrap();
            }
            for line in self.file("GITHUB_ENV").lines() {
                let (name, value) = line.split_once('=').unwrap();
                self.environment.insert(name.to_owned(), value.to_owned());
            }
        }
        code
    }
}

fn has(program: &str) -> bool {
    let found = stagewright::child::find_program(Path::new(program));
    tools::found_or_left_out(program, "STAGEWRIGHT_TOOLS_REQUIRED", found).is_some()
}

#[test]
fn the_workflow_previews_and_an_approved_one_makes_both_commits() {
    if !has("jq") || !has("curl") {
        return;
    }
    let mut run = Run::new("demo", "");
    assert_eq!(run.job("preview"), 0);
    assert_eq!(run.file("GITHUB_OUTPUT"), "left=state\n");
    let summary = run.file("GITHUB_STEP_SUMMARY");
    assert!(
        summary
            .starts_with("~~~~\nDestroy what the plan above shows for demo of FieldnotesDeploy?\n"),
        "{summary}"
    );
    for file in ["destroy/record.json", "destroy/report.html"] {
        assert!(run.estate.path().join(file).exists(), "{file}");
    }

    assert_eq!(run.job("destroy"), 0);
    for repository in ["TerraformState", "FieldnotesDeploy"] {
        let message = git(
            &run.estate,
            repository,
            &["log", "-1", "--format=%B", "main"],
        );
        for part in [
            "Build: https://github.com/example/estate/actions/runs/99\n",
            "Requested-By: ada\nApproved-By: grace\n",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
    assert!(
        git(
            &run.estate,
            "FieldnotesDeploy",
            &["ls-tree", "main", "config/demo"]
        )
        .is_empty()
    );
}

#[test]
fn a_refusal_ends_the_preview_and_stands_in_the_summary() {
    if !has("jq") {
        return;
    }
    let mut run = Run::new("prd", "");
    assert_eq!(run.job("preview"), 3);
    let mut wrong = Run::new("demo", "$(touch here) argocd/nobody");
    assert_eq!(wrong.job("preview"), 2);
    for run in [run, wrong] {
        assert!(!run.estate.path().join("here").exists());
        assert!(!run.estate.path().join("destroy/record.json").exists());
    }
}
