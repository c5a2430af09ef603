//! `presync apply` against the sandbox's repositories: what it leaves behind when all goes well, when it is stopped or
//! killed, when git is out of reach at its end, and what a hostile root can see of it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

#[path = "support/estate.rs"]
mod estate;
#[path = "support/processes.rs"]
mod processes;
#[path = "support/tools.rs"]
mod tools;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use estate::Estate;
use processes::until;
use rustix::process::Signal;
use serde_json::Value;

const KEY: &str = "argocd/FieldnotesDeploy/prd/terraform.tfstate";

/// How a run ended.
struct Run {
    code: Option<i32>,
    log: String,
}

impl Run {
    fn of(output: &Output) -> Run {
        let mut log = String::from_utf8_lossy(&output.stdout).into_owned();
        log.push_str(&String::from_utf8_lossy(&output.stderr));
        Run {
            code: output.status.code(),
            log,
        }
    }

    fn last(&self) -> &str {
        let mut lines = self
            .log
            .lines()
            .filter(|line| line.starts_with("presync: "));
        lines.next_back().unwrap_or_default()
    }
}

/// An estate whose FieldnotesDeploy/prd has a root of the test's own, and no state yet.
struct Stage {
    estate: Estate,
}

impl Stage {
    fn new() -> Stage {
        let estate = Estate::unpack();
        estate.commit("TerraformState", |files| {
            std::fs::remove_file(files.join(KEY)).unwrap();
        });
        Stage { estate }
    }

    /// Commits this root.
    fn deploy(&self, message: &str, root: &str) -> String {
        self.estate
            .commit_saying("FieldnotesDeploy", message, |files| {
                let folder = files.join("terraform");
                std::fs::remove_dir_all(&folder).unwrap();
                std::fs::create_dir(&folder).unwrap();
                let variables = "variable \"stage\" {}\nvariable \"namespace\" {}\n";
                std::fs::write(folder.join("main.tf"), format!("{variables}{root}")).unwrap();
                let config = files.join("config/prd");
                for file in std::fs::read_dir(&config).unwrap() {
                    let file = file.unwrap().path();
                    if file.extension().is_some_and(|e| e == "tfvars") {
                        std::fs::remove_file(file).unwrap();
                    }
                }
                std::fs::write(config.join("values.yaml"), "a: 1\n").unwrap();
            })
    }

    fn url(&self, name: &str) -> String {
        format!("file://{}", self.estate.repository(name).display())
    }

    fn presync(&self) -> Command {
        let mut presync = self.estate.program(env!("CARGO_BIN_EXE_presync"));
        presync
            .env("STAGEWRIGHT_STATE_URL", self.url("TerraformState"))
            .env("STAGEWRIGHT_SAVE_PATIENCE", "1")
            .env(
                "STAGEWRIGHT_TERMINATION_FILE",
                self.estate.path().join("summary"),
            );
        presync
    }

    fn apply(&self, commit: &str) -> Command {
        let mut presync = self.presync();
        let url = self.url("FieldnotesDeploy");
        presync.args(["apply", &url, commit, "prd", "fieldnotes-prd"]);
        presync
    }

    fn run(&self, mut command: Command) -> Run {
        let run = Run::of(&command.output().unwrap());
        assert_eq!(self.left_behind(), Vec::<String>::new(), "{}", run.log);
        run
    }

    /// What lies in the temporary folder.
    fn left_behind(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.estate.path().join("tmp")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    }

    fn git(&self, repository: &str, arguments: &[&str]) -> String {
        let mut git = self.estate.program("git");
        git.arg("--git-dir").arg(self.estate.repository(repository));
        let output = git.args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// The state on `branch`; null where there is none.
    fn state(&self, branch: &str) -> Value {
        let text = self.git("TerraformState", &["show", &format!("{branch}:{KEY}")]);
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn resources(&self) -> Vec<String> {
        let state = self.state("main");
        let resources = state["resources"].as_array().cloned().unwrap_or_default();
        let names = resources
            .iter()
            .map(|r| r["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    fn branches(&self) -> Vec<String> {
        let names = self.git(
            "TerraformState",
            &["for-each-ref", "--format=%(refname:short)"],
        );
        names.lines().map(str::to_owned).collect()
    }

    fn class(&self) -> String {
        let summaries = std::fs::read_to_string(self.estate.path().join("summary")).unwrap();
        let last: Value = serde_json::from_str(summaries.lines().last().unwrap()).unwrap();
        last["class"].as_str().unwrap().to_owned()
    }

    /// Has the state repository refuse every update of its branch main. The hook that does so.
    fn refuse_updates_of_main(&self) -> std::path::PathBuf {
        let hook = self
            .estate
            .repository("TerraformState")
            .join("hooks/update");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        write_program(&hook, "#!/bin/sh\n[ \"$1\" != refs/heads/main ]\n");
        hook
    }

    /// A root whose second resource lasts until somebody stops it, and says in a file that it has begun.
    fn slow_root(&self) -> String {
        let begun = self.estate.path().join("begun");
        format!(
            "resource \"terraform_data\" \"first\" {{}}\n\
             resource \"terraform_data\" \"slow\" {{\n  depends_on = [terraform_data.first]\n  \
             provisioner \"local-exec\" {{\n    command = \"touch {}; exec sleep 3600\"\n  }}\n}}\n",
            begun.display()
        )
    }

    /// Starts an apply of that root, and waits until it is in the middle.
    fn start_slow(&self) -> Child {
        self.start_slow_with_patience("1")
    }

    /// The same with so many seconds for a state that cannot be written.
    fn start_slow_with_patience(&self, seconds: &str) -> Child {
        let commit = self.deploy("Slow", &self.slow_root());
        let mut apply = self.apply(&commit);
        apply.env("STAGEWRIGHT_SAVE_PATIENCE", seconds);
        let child = apply
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("the second resource", || {
            self.estate.path().join("begun").exists().then_some(())
        });
        child
    }
}

fn write_program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, script).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

const TWO: &str =
    "resource \"terraform_data\" \"first\" {}\nresource \"terraform_data\" \"slow\" {}\n";

#[test]
fn an_apply_carries_out_its_plan_in_one_commit_and_a_second_one_finds_nothing_to_do() {
    let stage = Stage::new();
    let commit = stage.deploy("Two", TWO);
    let first = stage.run(stage.apply(&commit));
    assert_eq!(first.code, Some(0), "{}", first.log);
    assert_eq!(
        first.last(),
        "presync: applied 2 change(s), the state is saved at serial 1"
    );
    assert_eq!(stage.branches(), ["main"]);
    let message = stage.git("TerraformState", &["log", "-1", "--format=%an|%B", "main"]);
    let lineage = stage.state("main")["lineage"].as_str().unwrap().to_owned();
    assert_eq!(
        message.trim_end(),
        format!(
            "argocd-hook|Update {KEY}\n\nLineage: {lineage}\nSerial: 1\nDeploy-Commit: {commit}"
        )
    );
    let changed = stage.git("TerraformState", &["diff", "--name-only", "main~1", "main"]);
    assert_eq!(changed.trim_end(), KEY);

    let head = stage.git("TerraformState", &["rev-parse", "main"]);
    let second = stage.run(stage.apply(&commit));
    assert_eq!(second.code, Some(0), "{}", second.log);
    assert!(
        second
            .log
            .contains("presync: the plan carries no changes\n")
    );
    assert_eq!(
        second.last(),
        "presync: applied 0 change(s), the state is as it was"
    );
    assert_eq!(stage.git("TerraformState", &["rev-parse", "main"]), head);
    assert_eq!(stage.branches(), ["main"]);
}

#[test]
fn a_stopped_apply_saves_what_was_done_gives_the_lock_back_and_can_be_run_again() {
    let stage = Stage::new();
    let child = stage.start_slow();
    let id = child.id().cast_signed();
    processes::send(id, Signal::TERM);
    std::thread::sleep(std::time::Duration::from_millis(200));
    // Terraform would take a second one for an order to give up its state.
    processes::send(id, Signal::TERM);
    let stopped = Run::of(&child.wait_with_output().unwrap());
    assert_eq!(stopped.code, Some(1), "{}", stopped.log);
    assert!(!stopped.log.contains("Two interrupts"), "{}", stopped.log);
    assert_eq!(stage.class(), "stopped");
    assert!(
        stage.resources().contains(&"first".to_owned()),
        "{}",
        stopped.log
    );
    assert_eq!(stage.branches(), ["main"]);
    assert_eq!(stage.left_behind(), Vec::<String>::new());

    let again = stage.run(stage.apply(&stage.deploy("Quick", TWO)));
    assert_eq!(again.code, Some(0), "{}", again.log);
    assert_eq!(stage.resources(), ["first", "slow"]);
}

#[test]
fn after_a_kill_the_next_run_says_who_holds_the_lock_and_since_when() {
    let stage = Stage::new();
    let mut child = stage.start_slow();
    child.kill().unwrap();
    child.wait().unwrap();
    // In a pod they would have gone with it.
    until("the end of what the killed run started", || {
        let left = processes::of(stage.estate.path());
        for process in &left {
            processes::send(process.id, Signal::KILL);
        }
        left.is_empty().then_some(())
    });
    let commit = stage.deploy("Quick", TWO);
    let locked = stage.run(stage.apply(&commit));
    assert_eq!(locked.code, Some(1), "{}", locked.log);
    assert_eq!(stage.class(), "locked");
    let last = locked.last();
    assert!(
        last.starts_with(&format!(
            "presync: the state {KEY} is locked by argocd-hook@"
        )) && last.contains(", apply, since 20"),
        "{last}"
    );
    let command = last.rsplit_once("release it with presync ").unwrap().1;

    let mut locks = stage.presync();
    locks.arg("locks");
    let locks = stage.run(locks);
    assert!(
        locks
            .log
            .contains(&format!("presync: {KEY}: locked by argocd-hook@"))
    );

    let mut unlock = stage.presync();
    unlock.args(command.split(' '));
    let unlocked = stage.run(unlock);
    assert_eq!(unlocked.code, Some(0), "{}", unlocked.log);
    let again = stage.run(stage.apply(&commit));
    assert_eq!(again.code, Some(0), "{}", again.log);
}

/// Does what the log says, in an empty folder, with the program of this build as `presync`.
fn bring_back(stage: &Stage, log: &str) -> Run {
    let work = stage.estate.path().join("work");
    let bin = stage.estate.path().join("bin");
    std::fs::create_dir(&work).unwrap();
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_presync"), bin.join("presync")).unwrap();
    let log_file = stage.estate.path().join("the log");
    std::fs::write(&log_file, log).unwrap();
    let line = log
        .lines()
        .filter(|line| line.starts_with("presync: to bring it back, in an empty folder"))
        .find_map(|line| Some(line.split_once(": ")?.1.split_once(": ")?.1))
        .unwrap();
    let script = line
        .replace("THIS_LOG", &format!("'{}'", log_file.display()))
        .replace("; then remove the branch: ", "\n");
    let presync = stage.presync();
    let mut shell = stage.estate.program("sh");
    for (name, value) in presync.get_envs() {
        shell.env(name, value.unwrap());
    }
    let path = std::env::var("PATH").unwrap();
    shell.env("PATH", format!("{}:{path}", bin.display()));
    shell.args(["-ec", &script]).current_dir(work);
    stage.run(shell)
}

#[test]
fn with_git_out_of_reach_at_the_end_the_state_stands_in_the_log_and_is_brought_back_from_there() {
    let stage = Stage::new();
    let repository = stage.estate.repository("TerraformState");
    let away = repository.with_extension("away");
    let commit = stage.deploy(
        "Cut",
        &format!(
            "resource \"terraform_data\" \"first\" {{\n  input = \"precious\"\n  provisioner \"local-exec\" {{\n    command = \"mv {} {}\"\n  }}\n}}\n",
            repository.display(),
            away.display()
        ),
    );
    let cut = stage.run(stage.apply(&commit));
    assert_eq!(cut.code, Some(1), "{}", cut.log);
    assert_eq!(
        cut.last(),
        format!(
            "presync: the state of {KEY} is nowhere but in the lines above: keep this log, and bring the state back as they say"
        )
    );
    std::fs::rename(&away, &repository).unwrap();
    assert_eq!(stage.branches(), [format!("locks/{KEY}").as_str(), "main"]);
    assert_eq!(stage.resources(), Vec::<String>::new());
    let back = bring_back(&stage, &cut.log);
    assert_eq!(back.code, Some(0), "{}", back.log);
    let state = stage.state("main");
    assert_eq!(
        state["resources"][0]["instances"][0]["attributes"]["input"]["value"],
        "precious"
    );
    assert_eq!(stage.branches(), ["main"]);
}

#[test]
fn a_stop_ends_the_patience_with_a_state_that_cannot_be_written() {
    let stage = Stage::new();
    let mut child = stage.start_slow_with_patience("86400");
    let repository = stage.estate.repository("TerraformState");
    let away = repository.with_extension("away");
    std::fs::rename(&repository, &away).unwrap();
    processes::send(child.id().cast_signed(), Signal::TERM);
    until("the end of the apply", || child.try_wait().unwrap());
    let stopped = Run::of(&child.wait_with_output().unwrap());
    assert!(stopped.log.contains("presync-state: "), "{}", stopped.log);
    assert_eq!(stage.left_behind(), Vec::<String>::new());
}

#[test]
fn a_state_that_its_branch_refuses_is_kept_on_a_rescue_branch_and_brought_back_from_there() {
    let stage = Stage::new();
    let hook = stage.refuse_updates_of_main();
    let refused = stage.run(stage.apply(&stage.deploy("Two", TWO)));
    assert_eq!(refused.code, Some(1), "{}", refused.log);
    let rescue = format!("rescue/{KEY}/1");
    assert!(refused.last().contains(&rescue), "{}", refused.last());
    assert_eq!(stage.branches(), [&format!("locks/{KEY}"), "main", &rescue]);
    assert_eq!(stage.state(&rescue)["serial"], 1);
    std::fs::remove_file(&hook).unwrap();
    let back = bring_back(&stage, &refused.log);
    assert_eq!(back.code, Some(0), "{}", back.log);
    assert_eq!(stage.resources(), ["first", "slow"]);
    assert_eq!(stage.branches(), ["main"]);
}

#[test]
fn an_emergency_file_of_an_older_run_in_the_commit_never_becomes_the_state() {
    let stage = Stage::new();
    let first = stage.run(stage.apply(&stage.deploy("Two", TWO)));
    assert_eq!(first.code, Some(0), "{}", first.log);
    let mut errored = stage.state("main");
    errored["serial"] = 50.into();
    errored["resources"] = serde_json::json!([]);
    stage.deploy(
        "Three",
        &format!("{TWO}resource \"terraform_data\" \"third\" {{}}\n"),
    );
    let commit = stage.estate.commit("FieldnotesDeploy", |files| {
        let file = files.join("terraform/errored.tfstate");
        std::fs::write(file, errored.to_string()).unwrap();
    });
    let second = stage.run(stage.apply(&commit));
    assert_eq!(second.code, Some(0), "{}", second.log);
    assert_eq!(stage.resources(), ["first", "slow", "third"]);
    assert_eq!(stage.state("main")["serial"], 2);
    let line = "presync: terraform/errored.tfstate is in the commit and is not used";
    assert!(second.log.contains(line), "{}", second.log);
}

#[test]
fn a_run_whose_lock_was_released_writes_no_state_and_keeps_it_on_a_rescue_branch() {
    let stage = Stage::new();
    let other = "git commit-tree -m Lock $(git mktree </dev/null)";
    let commit = stage.deploy(
        "Lost",
        &format!(
            "resource \"terraform_data\" \"first\" {{\n  provisioner \"local-exec\" {{\n    command = <<-EOT\n      \
             cd {} && export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b && \
             git update-ref refs/heads/locks/{KEY} $({other})\n    EOT\n  }}\n}}\n",
            stage.estate.repository("TerraformState").display()
        ),
    );
    let lost = stage.run(stage.apply(&commit));
    assert_eq!(lost.code, Some(1), "{}", lost.log);
    assert_eq!(stage.resources(), Vec::<String>::new());
    let rescue = format!("rescue/{KEY}/1");
    assert_eq!(stage.state(&rescue)["serial"], 1, "{}", lost.log);
    assert_eq!(stage.branches(), [&format!("locks/{KEY}"), "main", &rescue]);
    assert!(!lost.log.contains("stays locked"), "{}", lost.log);
}

#[test]
fn an_emergency_file_that_a_full_disk_has_cut_short_takes_no_states_place() {
    let stage = Stage::new();
    stage.refuse_updates_of_main();
    let wrapper = stage.estate.path().join("terraform");
    let terraform = stagewright::child::find_program(Path::new("terraform")).unwrap();
    let script = format!(
        "#!/bin/sh\n{} \"$@\" && exit\n[ ! -e errored.tfstate ] || : >errored.tfstate\nexit 1\n",
        terraform.display()
    );
    write_program(&wrapper, &script);
    let mut apply = stage.apply(&stage.deploy("Two", TWO));
    apply.env("STAGEWRIGHT_TERRAFORM", &wrapper);
    let cut = stage.run(apply);
    assert_eq!(cut.code, Some(1), "{}", cut.log);
    let state = stage.state(&format!("rescue/{KEY}/1"));
    assert_eq!(
        state["resources"].as_array().map(Vec::len),
        Some(2),
        "{}",
        cut.log
    );
}

#[test]
fn a_protected_resource_stops_an_apply_and_passes_with_the_trailer() {
    let stage = Stage::new();
    let first = stage.run(stage.apply(&stage.deploy("Two", TWO)));
    assert_eq!(first.code, Some(0), "{}", first.log);
    let one =
        "resource \"terraform_data\" \"first\" {}\nresource \"terraform_data\" \"third\" {}\n";
    let protected = |commit: &str| {
        let mut apply = stage.apply(commit);
        apply.env("STAGEWRIGHT_PROTECT", "terraform_data.s*");
        stage.run(apply)
    };
    let stopped = protected(&stage.deploy("One\n\nNo trailer", one));
    assert_eq!(stopped.code, Some(1), "{}", stopped.log);
    assert_eq!(stage.class(), "refused");
    assert!(
        stopped.last().contains("terraform_data.slow"),
        "{}",
        stopped.last()
    );
    assert_eq!(stage.resources(), ["first", "slow"]);
    assert_eq!(stage.branches(), ["main"]);

    let passed = protected(&stage.deploy("One\n\nAllow-Destroy: terraform_data.slow", one));
    assert_eq!(passed.code, Some(0), "{}", passed.log);
    assert_eq!(stage.resources(), ["first", "third"]);
}

#[test]
fn a_sealed_state_is_not_applied_against_without_recipients_and_stays_sealed_with_them() {
    let sops = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("sops"))
        .find(|sops| sops.is_file());
    if tools::found_or_left_out("sops", "STAGEWRIGHT_TOOLS_REQUIRED", sops).is_none() {
        return;
    }
    let stage = Stage::new();
    let key = "argocd/PlatformDeploy/grafana/prd/terraform.tfstate";
    let key_file = stage
        .estate
        .path()
        .join("sandbox/credentials/sandbox.agekey");
    let keys = std::fs::read_to_string(&key_file).unwrap();
    let recipient = keys
        .lines()
        .find_map(|line| line.strip_prefix("# public key: "))
        .unwrap();
    let commit = stage.git("PlatformDeploy", &["rev-parse", "main"]);
    let apply = || {
        let mut presync = stage.presync();
        let url = stage.url("PlatformDeploy");
        presync.args([
            "apply",
            &url,
            commit.trim_end(),
            "prd",
            "grafana-prd",
            "grafana",
        ]);
        presync.env("SOPS_AGE_KEY_FILE", &key_file);
        presync
    };
    let before = stage.git("TerraformState", &["rev-parse", "main"]);
    let refused = stage.run(apply());
    assert_eq!(refused.code, Some(1), "{}", refused.log);
    assert_eq!(stage.class(), "refused");
    assert!(
        !refused.log.contains("Initializing the backend"),
        "{}",
        refused.log
    );
    assert_eq!(stage.git("TerraformState", &["rev-parse", "main"]), before);
    assert_eq!(stage.branches(), ["main"]);

    let mut sealing = apply();
    sealing.env("SOPS_AGE_RECIPIENTS", recipient);
    let applied = stage.run(sealing);
    assert_eq!(applied.code, Some(0), "{}", applied.log);
    assert_ne!(stage.git("TerraformState", &["rev-parse", "main"]), before);
    let kept = stage.git("TerraformState", &["show", &format!("main:{key}")]);
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert!(kept["lineage"].as_str().unwrap().starts_with("ENC["));
    assert!(kept["sops"]["mac"].is_string());
}

#[test]
fn a_state_that_sops_cannot_seal_for_a_while_is_tried_again_and_stands_nowhere_in_plain_text() {
    let sops = stagewright::child::find_program(Path::new("sops"));
    let Some(sops) = tools::found_or_left_out("sops", "STAGEWRIGHT_TOOLS_REQUIRED", sops) else {
        return;
    };
    let stage = Stage::new();
    let folder = stage.estate.path().join("programs");
    let away = stage.estate.path().join("away");
    std::fs::create_dir(&folder).unwrap();
    // Out of reach for as long as a line is left in the file.
    let script = format!(
        "#!/bin/sh\nif [ -s {0} ]; then sed -i 1d {0}; exit 1; fi\nexec {1} \"$@\"\n",
        away.display(),
        sops.display()
    );
    write_program(&folder.join("sops"), &script);
    let keys = stage
        .estate
        .path()
        .join("sandbox/credentials/sandbox.agekey");
    let text = std::fs::read_to_string(&keys).unwrap();
    let recipient = text
        .lines()
        .find_map(|line| line.strip_prefix("# public key: "))
        .unwrap();
    let root = format!(
        "resource \"terraform_data\" \"first\" {{\n  provisioner \"local-exec\" {{\n    command = \"printf '1\\\\n2\\\\n3\\\\n' >{}\"\n  }}\n}}\n",
        away.display()
    );
    let mut apply = stage.apply(&stage.deploy("Sealed", &root));
    let path = std::env::var("PATH").unwrap();
    apply
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("SOPS_AGE_KEY_FILE", &keys)
        .env("SOPS_AGE_RECIPIENTS", recipient);
    let run = stage.run(apply);
    assert_eq!(std::fs::read_to_string(&away).unwrap(), "");
    assert!(!run.log.contains("presync-state: "), "{}", run.log);
    let state = stage.state("main");
    assert!(
        state["lineage"].as_str().unwrap().starts_with("ENC["),
        "{}",
        run.log
    );
    assert_eq!(stage.branches(), ["main"]);
}

#[test]
fn a_hostile_root_finds_no_credential_of_ours() {
    let stage = Stage::new();
    let secrets = [
        ("GIT_PASSWORD", "the-password-of-git"),
        ("GITHUB_TOKEN", "the-token-of-the-forge"),
        ("SOPS_AGE_KEY", "AGE-SECRET-KEY-OF-SOPS"),
        ("STAGEWRIGHT_SECRET", "a-secret-of-stagewright"),
        ("TF_BACKEND_HTTP_SOMETHING", "a-secret-of-the-backend"),
    ];
    let found = stage.estate.path().join("found");
    let looked = stage.estate.path().join("looked");
    let patterns: String = secrets
        .iter()
        .map(|(_, secret)| {
            // Written so that the script does not find itself.
            let (head, tail) = secret.split_at(4);
            format!(" -e '[{}]{}{tail}'", &head[..1], &head[1..])
        })
        .collect();
    let script = format!(
        "#!/bin/sh\n{{ env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; cat /proc/$PPID/environ; \
         find {} -type f -exec cat {{}} +; }} 2>/dev/null | tr '\\0' '\\n' | grep -ac '' >{}\n\
         {{ env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; find {} -type f -exec cat {{}} +; }} 2>/dev/null \
         | tr '\\0' '\\n' | grep -a{patterns} >{}\nexit 0\n",
        stage.estate.path().join("tmp").display(),
        looked.display(),
        stage.estate.path().join("tmp").display(),
        found.display(),
    );
    let file = stage.estate.path().join("look");
    std::fs::write(&file, script).unwrap();
    let commit = stage.deploy(
        "Hostile",
        &format!(
            "resource \"terraform_data\" \"x\" {{\n  provisioner \"local-exec\" {{\n    command = \"sh {}\"\n  }}\n}}\n",
            file.display()
        ),
    );
    let apply = stage.apply(&commit);
    let mut command = without_the_right_to_look(&stage, &apply);
    for (name, secret) in secrets {
        command.env(name, secret);
    }
    let run = stage.run(command);
    assert_eq!(run.code, Some(0), "{}", run.log);
    let lines: usize = std::fs::read_to_string(&looked)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(lines > 20, "the root has looked at {lines} lines only");
    assert_eq!(std::fs::read_to_string(&found).unwrap(), "");
}

/// The command as it would run in a pod, whose root user may not look into other processes.
fn without_the_right_to_look(stage: &Stage, command: &Command) -> Command {
    let mut bare = if rustix::process::geteuid().is_root() {
        let mut setpriv = stage.estate.program("setpriv");
        setpriv.args([
            "--bounding-set=-sys_ptrace,-sys_admin,-perfmon",
            "--inh-caps=-all",
            "--",
        ]);
        setpriv.arg(command.get_program());
        setpriv
    } else {
        stage
            .estate
            .program(command.get_program().to_str().unwrap())
    };
    bare.args(command.get_args());
    for (name, value) in command.get_envs() {
        bare.env(name, value.unwrap_or_default());
    }
    bare.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    bare
}
