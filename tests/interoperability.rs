//! The real terraform-backend-git and we, on one state repository: each reads, changes and locks what the other wrote.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[expect(dead_code, reason = "the other program looks at the rest")]
#[path = "support/bench.rs"]
mod bench;
#[expect(dead_code, reason = "the requests are not counted here")]
#[path = "support/git_http.rs"]
mod git_http;
#[expect(dead_code, reason = "the one process is our own child")]
#[path = "support/processes.rs"]
mod processes;
#[path = "support/tools.rs"]
mod tools;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use bench::{Bench, KEY, Run};
use git_http::{Credentials, GitHttp, Options};
use serde_json::Value;
use stagewright::child::find_program;

const RECIPIENT: &str = "age1z8ddlq8swr6zywnv4cxq7fn32mnfvxhxygtsjm9ngytwu5te0sys67h49w";
const KEYS: &str = include_str!("../fixtures/estate/credentials/sandbox.agekey");
const THEIRS: &str = r#"{"ID":"theirs-1","Operation":"OperationTypeApply","Info":"","Who":"ada@laptop","Version":"1.11.4","Created":"2026-01-02T03:04:05.678901Z","Path":""}"#;

/// Whether states are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sealing {
    Plain,
    Age,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Theirs,
    Ours,
}

/// One state repository behind a git server, a running terraform-backend-git, and our program.
struct Both {
    bench: Bench,
    theirs: Theirs,
    url: String,
    _server: GitHttp,
}

/// The running program; it is ended when dropped.
struct Theirs {
    child: Child,
    port: u16,
}

impl Drop for Theirs {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The program that the variable names, else the one on PATH.
fn terraform_backend_git() -> Option<PathBuf> {
    let named = std::env::var_os("STAGEWRIGHT_TERRAFORM_BACKEND_GIT").map(PathBuf::from);
    let found = named.or_else(|| find_program(Path::new("terraform-backend-git")));
    tools::found_or_left_out(
        "terraform-backend-git",
        "STAGEWRIGHT_INTEROPERABILITY_REQUIRED",
        found,
    )
}

impl Both {
    /// Nothing where there is no such program.
    fn start(sealing: Sealing) -> Option<Both> {
        let program = terraform_backend_git()?;
        if sealing == Sealing::Age {
            let sops = find_program(Path::new("sops"));
            tools::found_or_left_out("sops", "STAGEWRIGHT_TOOLS_REQUIRED", sops)?;
        }
        let mut bench = Bench::new(&root("one"));
        let credentials = Credentials {
            user: "git".to_owned(),
            password: "correct horse".to_owned(),
        };
        bench.set("GIT_USERNAME", &credentials.user);
        bench.set("GIT_PASSWORD", &credentials.password);
        let server = GitHttp::serve(
            bench.path(),
            Options {
                credentials: Some(credentials),
                ..Options::default()
            },
        );
        let url = format!("{}/states.git", server.url());
        bench.set("STAGEWRIGHT_STATE_URL", &url);
        if sealing == Sealing::Age {
            bench.set("TF_BACKEND_HTTP_ENCRYPTION_PROVIDER", "sops");
            bench.set("TF_BACKEND_HTTP_SOPS_AGE_RECIPIENTS", RECIPIENT);
            let key = KEYS
                .lines()
                .find(|line| line.starts_with("AGE-SECRET-KEY-"));
            bench.set("SOPS_AGE_KEY", key.unwrap());
        }
        let theirs = Theirs::start(&program, &bench);
        let both = Both {
            bench,
            theirs,
            url,
            _server: server,
        };
        both.terraform(Side::Theirs, "init -input=false").done();
        Some(both)
    }

    fn query(&self) -> String {
        format!("type=git&repository={}&ref=main&state={KEY}", self.url)
    }

    /// The variables that lead Terraform to terraform-backend-git.
    fn variables(&self) -> [(&'static str, String); 3] {
        let address = format!("http://127.0.0.1:{}/?{}", self.theirs.port, self.query());
        [
            ("TF_HTTP_ADDRESS", address.clone()),
            ("TF_HTTP_LOCK_ADDRESS", address.clone()),
            ("TF_HTTP_UNLOCK_ADDRESS", address),
        ]
    }

    /// Runs Terraform by way of one side.
    fn terraform(&self, side: Side, words: &str) -> Run {
        match side {
            Side::Ours => self.bench.backend(&format!("-- terraform {words}")),
            Side::Theirs => {
                let mut terraform = self.bench.command("terraform");
                terraform.args(words.split(' ')).envs(self.variables());
                bench::ended(&mut terraform)
            }
        }
    }

    fn apply(&self, side: Side) -> Run {
        self.terraform(side, "apply -auto-approve -input=false -no-color")
    }

    fn state(&self, side: Side) -> Value {
        serde_json::from_str(&self.terraform(side, "state pull").done()).unwrap()
    }

    /// The status and the body of terraform-backend-git's answer.
    fn ask(&self, method: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.theirs.port)).unwrap();
        let request = format!(
            "{method} /?{} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.query(),
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }
}

impl Theirs {
    fn start(program: &Path, bench: &Bench) -> Theirs {
        // Freed for the program, which cannot choose one by itself.
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let log = File::create(bench.path().join("theirs.log")).unwrap();
        let child = bench
            .command(program.to_str().unwrap())
            .args(["--access-logs", "--address", &format!("127.0.0.1:{port}")])
            .stdout(Stdio::from(log.try_clone().unwrap()))
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let theirs = Theirs { child, port };
        processes::until("terraform-backend-git listens", || {
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        theirs
    }
}

fn root(input: &str) -> String {
    root_with(input, 9_007_199_254_740_991)
}

fn root_with(input: &str, number: u64) -> String {
    format!(
        "terraform {{\n  backend \"http\" {{}}\n}}\n\nresource \"terraform_data\" \"a\" {{\n  input = {{\n    text = \"{input}\"\n    number = {number}\n    empty = \"\"\n  }}\n}}\n"
    )
}

/// Each side writes in turn what the other one then reads.
fn take_turns(first: Side, second: Side, sealing: Sealing) {
    let Some(both) = Both::start(sealing) else {
        return;
    };
    // The sops within terraform-backend-git reads integers as floating-point numbers when it seals them.
    let number = match sealing {
        Sealing::Plain => 9_007_199_254_740_993,
        Sealing::Age => 9_007_199_254_740_991,
    };
    let mut serial = 0;
    let turns = [
        (first, "one"),
        (second, "two"),
        (first, "three"),
        (second, "four"),
    ];
    for (side, input) in turns {
        let other = if side == first { second } else { first };
        both.bench.write_root(&root_with(input, number));
        both.apply(side).done();
        let kept: Value = serde_json::from_str(&both.bench.kept()).unwrap();
        let is_sealed = kept["sops"]["mac"].is_string();
        assert_eq!(is_sealed, sealing == Sealing::Age, "{side:?}: {kept}");

        let state = both.state(other);
        assert_eq!(state, both.state(side));
        let value = &state["resources"][0]["instances"][0]["attributes"]["input"]["value"];
        assert_eq!(value["text"], input);
        assert_eq!(value["number"], number);
        assert!(state["serial"].as_u64().unwrap() > serial);
        serial = state["serial"].as_u64().unwrap();
        let plan = both.terraform(other, "plan -input=false -detailed-exitcode");
        assert_eq!(plan.code, 0, "{side:?} {input}: {plan:#?}");
        assert_eq!(both.bench.locks(), Vec::<String>::new());
    }
    both.terraform(first, "state mv terraform_data.a terraform_data.b")
        .done();
    assert_eq!(
        both.terraform(second, "state list").done(),
        "terraform_data.b\n"
    );
    both.terraform(second, "state rm terraform_data.b").done();
    assert_eq!(both.terraform(first, "state list").done(), "");
    assert_eq!(both.bench.locks(), Vec::<String>::new());
}

#[test]
fn a_plain_state_goes_from_hand_to_hand_when_theirs_is_first() {
    take_turns(Side::Theirs, Side::Ours, Sealing::Plain);
}

#[test]
fn a_plain_state_goes_from_hand_to_hand_when_ours_is_first() {
    take_turns(Side::Ours, Side::Theirs, Sealing::Plain);
}

#[test]
fn a_sealed_state_goes_from_hand_to_hand_when_theirs_is_first() {
    take_turns(Side::Theirs, Side::Ours, Sealing::Age);
}

#[test]
fn a_sealed_state_goes_from_hand_to_hand_when_ours_is_first() {
    take_turns(Side::Ours, Side::Theirs, Sealing::Age);
}

#[test]
fn a_lock_of_theirs_blocks_ours_and_either_releases_it() {
    let Some(both) = Both::start(Sealing::Plain) else {
        return;
    };
    for releases in [Side::Theirs, Side::Ours] {
        let (status, body) = both.ask("LOCK", THEIRS);
        assert_eq!(status, 200, "{body}");
        assert_eq!(both.bench.locks(), [format!("locks/{KEY}")]);
        let blocked = both.apply(Side::Ours);
        assert_eq!(blocked.code, 1);
        assert!(
            blocked.says("Error acquiring the state lock"),
            "{blocked:#?}"
        );
        let holder =
            "by ada@laptop, OperationTypeApply, since 2026-01-02T03:04:05.678901Z, ID theirs-1";
        assert!(
            blocked.says(&format!("{KEY} is locked: {holder}")),
            "{blocked:#?}"
        );
        let listed = both.bench.presync(&["locks"]).done();
        assert!(
            listed.starts_with(&format!("presync: {KEY}: locked {holder}, ")),
            "{listed}"
        );
        assert_eq!(both.bench.commits(), 1);
        match releases {
            Side::Theirs => assert_eq!(both.ask("UNLOCK", THEIRS).0, 200),
            Side::Ours => {
                both.bench
                    .presync(&["unlock", KEY, "--lock-id", "theirs-1"])
                    .done();
            }
        }
        assert_eq!(both.bench.locks(), Vec::<String>::new());
    }
    both.apply(Side::Ours).done();
    both.apply(Side::Theirs).done();
}

#[test]
fn a_lock_of_ours_blocks_theirs_and_either_releases_it() {
    let Some(both) = Both::start(Sealing::Plain) else {
        return;
    };
    for releases in [Side::Theirs, Side::Ours] {
        // Its presync is killed, and leaves the lock as it stands.
        both.bench.write_root(&format!(
            "{}\nresource \"terraform_data\" \"ends\" {{\n  provisioner \"local-exec\" {{\n    command = \"kill -KILL $(cut -d ' ' -f 4 /proc/$PPID/stat)\"\n  }}\n}}\n",
            root("one")
        ));
        assert_eq!(both.apply(Side::Ours).code, -9);
        let ours = both
            .bench
            .git(&["show", &format!("locks/{KEY}:{KEY}.lock")]);
        let id = serde_json::from_str::<Value>(&ours).unwrap()["ID"].clone();

        let (status, body) = both.ask("LOCK", THEIRS);
        assert_eq!(status, 409);
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["ID"], id);
        let (status, body) = both.ask("UNLOCK", THEIRS);
        assert_eq!(status, 409);
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["ID"], id);
        both.bench.write_root(&root("one"));
        let blocked = both.apply(Side::Theirs);
        assert_eq!(blocked.code, 1);
        assert!(
            blocked.says("Error acquiring the state lock"),
            "{blocked:#?}"
        );
        assert!(blocked.says(id.as_str().unwrap()), "{blocked:#?}");
        match releases {
            Side::Theirs => assert_eq!(both.ask("UNLOCK", &ours).0, 200),
            Side::Ours => {
                let id = id.as_str().unwrap();
                both.bench.presync(&["unlock", KEY, "--lock-id", id]).done();
            }
        }
        assert_eq!(both.bench.locks(), Vec::<String>::new());
    }
    both.apply(Side::Theirs).done();
    both.apply(Side::Ours).done();
}

/// While `side` applies, the other one tries to.
fn meets_an_apply_under_way(side: Side) {
    let Some(both) = Both::start(Sealing::Plain) else {
        return;
    };
    let script = both.bench.path().join("other.sh");
    let command = match side {
        Side::Theirs => format!(
            "{} backend {KEY} -- terraform",
            env!("CARGO_BIN_EXE_presync")
        ),
        Side::Ours => "terraform".to_owned(),
    };
    let mut text = String::from("cd \"$(dirname \"$0\")/other\"\n");
    // What a run of ours does not hand on to what Terraform starts.
    let variables = both.variables();
    let variables = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    let states = [
        ("STAGEWRIGHT_STATE_URL", both.url.as_str()),
        ("GIT_USERNAME", "git"),
        ("GIT_PASSWORD", "correct horse"),
    ];
    for (name, value) in variables.chain(states) {
        text.push_str(&format!("export {name}='{value}'\n"));
    }
    text.push_str(&format!(
        "{command} init -input=false >../init 2>&1\n{command} apply -auto-approve -input=false -no-color >../tried 2>&1\necho $? >../code\n"
    ));
    std::fs::write(&script, text).unwrap();
    let other = both.bench.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("main.tf"), root("two")).unwrap();
    both.bench.write_root(&format!(
        "{}\nresource \"terraform_data\" \"calls\" {{\n  provisioner \"local-exec\" {{\n    command = \"sh {}\"\n  }}\n}}\n",
        root("one"),
        script.display()
    ));
    both.apply(side).done();
    let read = |name: &str| std::fs::read_to_string(both.bench.path().join(name)).unwrap();
    let tried = read("tried");
    assert_eq!(read("code"), "1\n", "{tried}");
    assert!(tried.contains("Error acquiring the state lock"), "{tried}");
    assert_eq!(both.bench.locks(), Vec::<String>::new());
    both.bench.write_root(&root("two"));
    let next = if side == Side::Ours {
        Side::Theirs
    } else {
        Side::Ours
    };
    both.apply(next).done();
}

#[test]
fn an_apply_of_theirs_blocks_ours_while_it_is_under_way() {
    meets_an_apply_under_way(Side::Theirs);
}

#[test]
fn an_apply_of_ours_blocks_theirs_while_it_is_under_way() {
    meets_an_apply_under_way(Side::Ours);
}
