//! Stopping a job: which signals reach Terraform, how the programs end, and what is left (nothing).
//!
//! Terraform is real and slow where a test wants it: its plan reads a remote state from a server that does not answer.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/estate.rs"]
mod estate;
#[path = "support/processes.rs"]
mod processes;
#[path = "support/slow_server.rs"]
mod slow_server;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use estate::Estate;
use processes::{Process, send, until};
use rustix::process::{Pid, Signal, kill_process_group};
use slow_server::SlowServer;

const PLAN: &str = env!("CARGO_BIN_EXE_stagewright-plan");
const PRESYNC: &str = env!("CARGO_BIN_EXE_presync");

/// An estate whose FieldnotesDeploy/prd hangs in its plan until the server answers, with a program in Terraform's place
/// that notes every signal, and has a child of its own beside Terraform.
struct Slow {
    estate: Estate,
    server: SlowServer,
    commit: String,
}

impl Slow {
    fn new() -> Slow {
        let estate = Estate::unpack();
        let server = SlowServer::start();
        let root = format!(
            "data \"terraform_remote_state\" \"slow\" {{\n  backend = \"http\"\n  config = {{\n    address = \"{}/state\"\n  }}\n}}\n",
            server.url()
        );
        let commit = estate.commit("FieldnotesDeploy", |files| {
            std::fs::write(files.join("terraform/main.tf"), root).unwrap();
            std::fs::remove_file(files.join("terraform/outputs.tf")).unwrap();
        });
        let slow = Slow {
            estate,
            server,
            commit,
        };
        slow.write_program(&format!(
            "terraform \"$@\" &\n\
             terraform=$!\n\
             trap 'echo INT >>{signals}; kill -INT $terraform' INT\n\
             trap 'echo TERM >>{signals}; kill -TERM $terraform' TERM\n\
             sleep 3600 &\n\
             while kill -0 $terraform 2>/dev/null; do wait $terraform; code=$?; done\n\
             exit $code\n",
            signals = slow.signals_file().display()
        ));
        slow
    }

    /// What stands in Terraform's place for a plan.
    fn write_program(&self, plan: &str) {
        let program = self.program();
        let text = format!("#!/bin/bash\n[ \"$1\" = plan ] || exec terraform \"$@\"\n{plan}");
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn program(&self) -> PathBuf {
        self.estate.path().join("noting-terraform")
    }

    fn signals_file(&self) -> PathBuf {
        self.estate.path().join("signals")
    }

    /// The signals that Terraform got, a line each.
    fn signals(&self) -> String {
        std::fs::read_to_string(self.signals_file()).unwrap_or_default()
    }

    fn wait_for_signals(&self) {
        until("Terraform gets a signal", || {
            (!self.signals().is_empty()).then_some(())
        });
    }

    fn plan(&self) -> Command {
        let settings = self.estate.path().join("settings.yaml");
        let text = format!(
            "forge: {{git: {{root: sandbox/git, known_as: https://github.com/example}}}}\n\
             registry: {{repo: ArgoCDDeploy}}\nstate: {{repo: TerraformState}}\nrunner: local\n\
             terraform: {{program: {}}}\n",
            self.program().display()
        );
        std::fs::write(&settings, text).unwrap();
        plan_with(&self.estate, &settings)
    }

    /// Waits until the signal is noted, lets Terraform's plan go on, and waits for the end.
    fn let_it_stop(&self, job: &mut Running<'_>) -> End {
        self.wait_for_signals();
        self.server.answer();
        job.end()
    }

    /// Starts a plan, and waits until Terraform hangs in it.
    fn hanging(&self) -> Running<'_> {
        let running = Running::start(&self.estate, self.plan());
        self.server.wait_for_a_request();
        running
    }
}

fn plan_with(estate: &Estate, settings: &Path) -> Command {
    let mut command = estate.program(PLAN);
    command.arg("--settings").arg(settings);
    command.args(["--repo", "FieldnotesDeploy", "--stage", "prd"]);
    command
}

/// A program of ours that runs, in a process group of its own, with its output in files.
struct Running<'a> {
    estate: &'a Estate,
    child: Child,
}

/// How it ended.
struct End {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

impl Running<'_> {
    fn start(estate: &Estate, mut command: Command) -> Running<'_> {
        let create = |name: &str| File::create(estate.path().join(name)).unwrap();
        let child = command
            .stdout(create("stdout"))
            .stderr(create("stderr"))
            .process_group(0)
            .spawn()
            .unwrap();
        Running { estate, child }
    }

    fn id(&self) -> i32 {
        self.child.id().cast_signed()
    }

    fn presync(&self) -> Process {
        processes::of(self.estate.path())
            .into_iter()
            .find(|process| process.command.starts_with("presync "))
            .unwrap()
    }

    /// Waits for its end. What it started is left alone until this is dropped, so that a test can look for it.
    fn end(&mut self) -> End {
        let status = until("the program ends", || self.child.try_wait().unwrap());
        let read = |name: &str| std::fs::read_to_string(self.estate.path().join(name)).unwrap();
        End {
            status,
            stdout: read("stdout"),
            stderr: read("stderr"),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Of a test that has failed: what it started must not outlive it.
        for process in processes::of(self.estate.path()) {
            rustix::process::kill_process(Pid::from_raw(process.id).unwrap(), Signal::KILL).ok();
        }
        self.child.wait().ok();
    }
}

/// Waits until no process of the estate and no private folder is left.
fn nothing_is_left(estate: &Estate) {
    let mut left = Vec::new();
    until("nothing is left", || {
        left = processes::of(estate.path())
            .into_iter()
            .map(|process| process.command)
            .collect();
        let folders = std::fs::read_dir(estate.path().join("tmp")).unwrap();
        left.extend(folders.map(|f| f.unwrap().path().display().to_string()));
        left.is_empty().then_some(())
    });
}

#[test]
fn an_int_reaches_terraform_once_and_the_job_ends_130() {
    let slow = Slow::new();
    let mut job = slow.hanging();
    send(job.id(), Signal::INT);
    let end = slow.let_it_stop(&mut job);
    assert_eq!(end.status.code(), Some(130), "{}", end.stderr);
    assert_eq!(slow.signals(), "TERM\n");
    assert!(
        end.stdout
            .contains("presync: stopped by TERM during terraform plan"),
        "{}",
        end.stdout
    );
    assert!(
        end.stderr
            .contains("Planned: nothing for FieldnotesDeploy/prd, stopped after "),
        "{}",
        end.stderr
    );
    nothing_is_left(&slow.estate);
}

#[test]
fn a_term_reaches_terraform_once_and_the_job_ends_143() {
    let slow = Slow::new();
    let mut job = slow.hanging();
    send(job.id(), Signal::TERM);
    assert_eq!(slow.let_it_stop(&mut job).status.code(), Some(143));
    assert_eq!(slow.signals(), "TERM\n");
    nothing_is_left(&slow.estate);
}

#[test]
fn a_ctrl_c_at_the_terminal_reaches_terraform_once() {
    let slow = Slow::new();
    let mut job = slow.hanging();
    kill_process_group(Pid::from_raw(job.id()).unwrap(), Signal::INT).unwrap();
    let end = slow.let_it_stop(&mut job);
    assert_eq!(end.status.code(), Some(130), "{}", end.stderr);
    assert_eq!(slow.signals(), "TERM\n");
    nothing_is_left(&slow.estate);
}

#[test]
fn a_term_to_the_job_and_then_to_its_group_as_timeout_sends_it_is_one() {
    let slow = Slow::new();
    let mut job = slow.hanging();
    send(job.id(), Signal::TERM);
    kill_process_group(Pid::from_raw(job.id()).unwrap(), Signal::TERM).unwrap();
    let end = slow.let_it_stop(&mut job);
    assert_eq!(end.status.code(), Some(143), "{}", end.stderr);
    assert!(!end.stderr.contains("left running"), "{}", end.stderr);
    assert_eq!(slow.signals(), "TERM\n");
    nothing_is_left(&slow.estate);
}

#[test]
fn a_second_signal_ends_the_job_at_once_and_it_names_what_is_left() {
    let slow = Slow::new();
    let mut job = slow.hanging();
    let presync = job.presync();
    send(job.id(), Signal::INT);
    slow.wait_for_signals();
    // One that comes at once after the first does not count: it is sent until one does.
    until("a second signal ends the job", || {
        send(job.id(), Signal::TERM);
        job.child.try_wait().unwrap()
    });
    let end = job.end();
    // The first one decides.
    assert_eq!(end.status.code(), Some(130));
    let left = format!(
        "left running: presync, process {}, and the Terraform that it runs\n",
        presync.id
    );
    assert!(end.stderr.contains(&left), "{}", end.stderr);
    // That is the truth: both run on, and end by themselves.
    assert!(processes::of(slow.estate.path()).contains(&presync));
    slow.server.answer();
    nothing_is_left(&slow.estate);
    assert_eq!(slow.signals(), "TERM\n");
}

#[test]
fn a_kill_of_the_job_takes_presync_and_terraform_along() {
    let slow = Slow::new();
    let mut job = slow.hanging();
    send(job.id(), Signal::KILL);
    // The server never answers: a Terraform that does not stop by itself is killed.
    nothing_is_left(&slow.estate);
    assert_eq!(slow.signals(), "TERM\n");
    assert_eq!(job.end().status.signal(), Some(9));
}

#[test]
fn a_kill_of_presync_is_told_ends_the_job_with_4_and_leaves_nothing() {
    let slow = Slow::new();
    let mut job = slow.hanging();
    send(job.presync().id, Signal::KILL);
    let end = job.end();
    // At once: what presync left is gone before the job is.
    assert_eq!(processes::of(slow.estate.path()), []);
    assert_eq!(end.status.code(), Some(4), "{}", end.stderr);
    assert!(
        end.stderr
            .contains("the log is not complete: presync was killed by signal 9;"),
        "{}",
        end.stderr
    );
    assert_eq!(slow.signals(), "TERM\n");
    nothing_is_left(&slow.estate);
}

#[test]
fn a_stop_while_the_job_waits_for_git_ends_it_and_gits_helpers_at_once() {
    let estate = Estate::unpack();
    let server = SlowServer::start();
    let settings = estate.path().join("settings.yaml");
    let text = format!(
        "forge: {{git: {{root: {}}}}}\nregistry: {{repo: ArgoCDDeploy}}\nstate: {{repo: TerraformState}}\nrunner: local\n",
        server.url()
    );
    std::fs::write(&settings, text).unwrap();
    let mut job = Running::start(&estate, plan_with(&estate, &settings));
    server.wait_for_a_request();
    send(job.id(), Signal::TERM);
    let end = job.end();
    assert_eq!(end.status.code(), Some(143), "{}", end.stderr);
    assert_eq!(end.stdout, "");
    nothing_is_left(&estate);
}

/// A plan whose presync waits for the state repository, on a server that does not answer.
fn waiting_for_the_state(estate: &Estate) -> (SlowServer, Running<'_>) {
    let server = SlowServer::start();
    let settings = estate.path().join("settings.yaml");
    let text = format!(
        "forge: {{git: {{root: sandbox/git}}}}\nregistry: {{repo: ArgoCDDeploy}}\nstate: {{url: {}/x.git}}\nrunner: local\n",
        server.url()
    );
    std::fs::write(&settings, text).unwrap();
    let mut command = plan_with(estate, &settings);
    command.args(["--namespace", "fieldnotes-prd"]);
    let job = Running::start(estate, command);
    server.wait_for_a_request();
    (server, job)
}

#[test]
fn a_stop_while_presync_waits_for_git_ends_both_and_gits_helpers_at_once() {
    let estate = Estate::unpack();
    let (_server, mut job) = waiting_for_the_state(&estate);
    send(job.id(), Signal::TERM);
    let end = job.end();
    assert_eq!(end.status.code(), Some(143), "{}", end.stderr);
    assert!(
        end.stdout.ends_with("presync: stopped by TERM\n"),
        "{}",
        end.stdout
    );
    nothing_is_left(&estate);
}

#[test]
fn a_kill_of_the_job_while_presync_waits_for_git_leaves_nothing() {
    let estate = Estate::unpack();
    let (_server, mut job) = waiting_for_the_state(&estate);
    send(job.id(), Signal::KILL);
    assert_eq!(job.end().status.signal(), Some(9));
    nothing_is_left(&estate);
}

#[test]
fn a_kill_of_presync_while_it_waits_for_git_leaves_nothing() {
    let estate = Estate::unpack();
    let (_server, mut job) = waiting_for_the_state(&estate);
    send(job.presync().id, Signal::KILL);
    let end = job.end();
    assert_eq!(processes::of(estate.path()), []);
    assert_eq!(end.status.code(), Some(4), "{}", end.stderr);
    nothing_is_left(&estate);
}

#[test]
fn a_stop_before_anything_ran_starts_nothing() {
    let slow = Slow::new();
    let settings = slow.estate.path().join("settings");
    assert!(
        Command::new("mkfifo")
            .arg(&settings)
            .status()
            .unwrap()
            .success()
    );
    let mut job = Running::start(&slow.estate, plan_with(&slow.estate, &settings));
    // Opened as soon as the job reads its settings, and it waits for them until they are written.
    let mut writer = File::options().write(true).open(&settings).unwrap();
    send(job.id(), Signal::TERM);
    let text = "forge: {git: {root: sandbox/git, known_as: https://github.com/example}}\n\
                registry: {repo: ArgoCDDeploy}\nstate: {repo: TerraformState}\nrunner: local\n";
    writer.write_all(text.as_bytes()).unwrap();
    drop(writer);
    let end = job.end();
    assert_eq!(end.status.code(), Some(143), "{}", end.stderr);
    assert_eq!(end.stdout, "");
    assert!(!end.stderr.contains("runner"), "{}", end.stderr);
    nothing_is_left(&slow.estate);
}

#[test]
fn a_presync_of_its_own_that_gets_a_term_ends_1_and_says_so_in_its_log_and_its_summary() {
    let slow = Slow::new();
    let url = |name: &str| format!("file://{}", slow.estate.repository(name).display());
    let summary = slow.estate.path().join("summary");
    let mut command = slow.estate.program(PRESYNC);
    command
        .args(["plan", &url("FieldnotesDeploy"), &slow.commit])
        .args(["prd", "fieldnotes-prd"])
        .env("STAGEWRIGHT_STATE_URL", url("TerraformState"))
        .env("STAGEWRIGHT_TERRAFORM", slow.program())
        .env("STAGEWRIGHT_TERMINATION_FILE", &summary);
    let mut presync = Running::start(&slow.estate, command);
    slow.server.wait_for_a_request();
    send(presync.id(), Signal::TERM);
    slow.wait_for_signals();
    // The answer must not come before Terraform itself knows of the signal: it would end its plan well.
    until("Terraform says that it stops", || {
        let said = std::fs::read_to_string(slow.estate.path().join("stdout")).unwrap();
        said.contains("Interrupt received").then_some(())
    });
    slow.server.answer();
    let end = presync.end();
    assert_eq!(end.status.code(), Some(1));
    assert_eq!(
        end.stdout.lines().last().unwrap(),
        "presync: stopped by TERM during terraform plan, which ended with exit code 1"
    );
    let summary = std::fs::read_to_string(&summary).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["class"], "stopped");
    assert_eq!(summary["bytes"], end.stdout.len());
    assert_eq!(slow.signals(), "TERM\n");
    nothing_is_left(&slow.estate);
}

#[test]
fn a_reader_that_goes_away_ends_the_job_with_1_and_leaves_nothing() {
    let slow = Slow::new();
    let mut command = slow.plan();
    let mut job = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    // The whole reader is dropped with this statement.
    BufReader::new(job.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert!(first.starts_with("presync: Terraform "), "{first}");
    slow.server.answer();
    let end = job.wait_with_output().unwrap();
    let stderr = String::from_utf8(end.stderr).unwrap();
    assert_eq!(end.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("stagewright-plan: the log could not be shown, so the run was stopped\n  because: Broken pipe"), "{stderr}");
    nothing_is_left(&slow.estate);
}

#[test]
fn a_reader_that_does_not_read_cannot_keep_a_stop_from_the_job() {
    let slow = Slow::new();
    slow.server.answer();
    slow.write_program("yes 'more than a pipe holds' | head -c 3000000\nexec terraform \"$@\"\n");
    let mut job = slow
        .plan()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let unread = job.stdout.take().unwrap();
    until("the plan prints", || {
        processes::of(slow.estate.path())
            .into_iter()
            .find(|process| process.command.starts_with("head -c"))
    });
    send(job.id().cast_signed(), Signal::INT);
    let end = job.wait_with_output().unwrap();
    let stderr = String::from_utf8(end.stderr).unwrap();
    assert_eq!(end.status.code(), Some(130), "{stderr}");
    drop(unread);
    nothing_is_left(&slow.estate);
}

#[test]
fn a_ctrl_c_that_ends_the_reader_too_ends_the_job_with_130() {
    let slow = Slow::new();
    let mut job = slow
        .plan()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    slow.server.wait_for_a_request();
    drop(job.stdout.take());
    send(job.id().cast_signed(), Signal::INT);
    slow.wait_for_signals();
    slow.server.answer();
    let end = job.wait_with_output().unwrap();
    let stderr = String::from_utf8(end.stderr).unwrap();
    assert_eq!(end.status.code(), Some(130), "{stderr}");
    assert_eq!(slow.signals(), "TERM\n");
    nothing_is_left(&slow.estate);
}

#[test]
fn a_daemon_that_keeps_terraforms_output_open_does_not_keep_the_run() {
    let slow = Slow::new();
    slow.server.answer();
    // In a session of its own, as a daemon that a provisioner starts: it is not ours to kill.
    slow.write_program("setsid sleep 3600 &\nexec terraform \"$@\"\n");
    let mut job = Running::start(&slow.estate, slow.plan());
    let end = job.end();
    let daemons = processes::of(slow.estate.path());
    let commands: Vec<&str> = daemons.iter().map(|d| d.command.as_str()).collect();
    assert_eq!(commands, ["sleep 3600"]);
    assert_eq!(end.status.code(), Some(0), "{}", end.stderr);
    send(daemons[0].id, Signal::KILL);
    nothing_is_left(&slow.estate);
}
