//! Programs that we start: each in a process group of its own, without a terminal, and gone when we are gone.
//!
//! A parent-death signal has to be set by the child itself between fork and exec. Safe Rust has no place there, so
//! the executable starts itself a second time under the name [`CALLED_AS`], sets the signal and becomes the program.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// The name (`argv[0]`) under which our executable only sets the parent-death signal and becomes another program.
const CALLED_AS: &str = "stagewright-child";

/// How long a pipe is read after its program has ended. What the program wrote is there already; a pipe that stays open
/// is held by something that outlives it, as ssh's ControlPersist does.
pub const LINGER: Duration = Duration::from_millis(500);

/// Set by [`become_program`]: only a `main` that asks that question may be started a second time under [`CALLED_AS`].
/// (A test runner does not ask; its children go without the signal.)
static STARTS_ITSELF: OnceLock<()> = OnceLock::new();

/// What can go wrong with a program that we start.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It could not be started at all.
    #[error("{program} could not be started")]
    Start {
        /// The program as it was named.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Its pipes or its end could not be read.
    #[error("the output of {program} could not be read")]
    Pipe {
        /// The program as it was named.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It did not end in time and was killed.
    #[error("{program} did not end within {} s and was killed", bound.as_secs())]
    TimedOut {
        /// The program as it was named.
        program: String,
        /// How long it was given.
        bound: Duration,
    },
}

/// The first question of every `main`: was this process started only to become another program?
/// Then it never returns, but for a program that cannot be started.
pub fn become_program() -> Option<ExitCode> {
    let mut args = std::env::args_os();
    if args.next().as_deref() != Some(OsStr::new(CALLED_AS)) {
        // A second `main` in one process does not exist, so a second `set` cannot either.
        let _first = STARTS_ITSELF.set(());
        return None;
    }
    let parent = args.next().and_then(|p| p.to_str()?.parse::<i32>().ok());
    let program = args.next()?;
    // TERM and not KILL: Terraform then ends its providers itself, which a KILL would leave behind.
    if rustix::process::set_parent_process_death_signal(Some(Signal::TERM)).is_err()
        || rustix::process::getppid().map(Pid::as_raw_pid) != parent
    {
        // The parent went away before the signal was set: nobody waits for this program any more.
        return Some(ExitCode::from(143));
    }
    let error = std::process::Command::new(&program).args(args).exec();
    crate::report::child_did_not_start(&program, &error);
    Some(ExitCode::from(127))
}

/// A command for `program` that dies with us, has no standard input and a process group of its own (Ctrl-C reaches
/// the whole foreground group, and each of our children is told to stop by us, once).
pub fn command(program: &Path) -> Command {
    let mut command = if STARTS_ITSELF.get().is_some() {
        // Not current_exe(): the file may have been replaced by a newer build since we started.
        let mut command = Command::new("/proc/self/exe");
        command.arg0(CALLED_AS).arg(std::process::id().to_string());
        command.arg(program);
        command
    } else {
        Command::new(program)
    };
    command
        .stdin(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Our own executable under another name (`argv[0]`), as [`command`] starts programs.
pub fn ourselves_as(name: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name).stdin(Stdio::null()).process_group(0);
    command
}

/// Sets the parent-death signal of this very process: for a program of ours that was started by one of ours.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    let now = rustix::process::getppid().map(|p| p.as_raw_pid().cast_unsigned());
    if now == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::other("it is gone"))
    }
}

/// Runs `command` to its end and takes what it prints; `input` goes to its standard input. Killed after `bound`, or when
/// the caller gives it up, with all that it started: git's transport helpers do not end with git.
pub async fn capture(
    mut command: Command,
    program: &str,
    input: &[u8],
    bound: Duration,
) -> Result<Output, ChildError> {
    let pipe = |source| ChildError::Pipe {
        program: program.to_owned(),
        source,
    };
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if !input.is_empty() {
        command.stdin(Stdio::piped());
    }
    tracing::debug!("{program} {}", arguments_of(&command));
    let child = command.spawn().map_err(|source| ChildError::Start {
        program: program.to_owned(),
        source,
    })?;
    let group = child.id();
    let whole = to_the_end(child, input);
    tokio::pin!(whole);
    // Declared after the child, so dropped before it: as long as the child is not waited for, the group is its own.
    let mut given_up = GivenUp { group };
    match tokio::time::timeout(bound, whole.as_mut()).await {
        Ok(result) => {
            let output = result.map_err(pipe)?;
            given_up.group = None;
            Ok(output)
        }
        Err(_elapsed) => Err(ChildError::TimedOut {
            program: program.to_owned(),
            bound,
        }),
    }
}

/// The process group of a program that nobody waits for any more; killed when this is dropped.
struct GivenUp {
    group: Option<u32>,
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        kill_strays(self.group);
    }
}

async fn to_the_end(mut child: Child, input: &[u8]) -> io::Result<Output> {
    let stdin = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            match stdin.write_all(input).await {
                // A program may end without reading everything; its exit code tells whether that was right.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                other => other,
            }
        } else {
            Ok(())
        }
    };
    let mut output = Output {
        status: ExitStatus::default(),
        stdout: Vec::new(),
        stderr: Vec::new(),
    };
    let pipes = async {
        let out = read_all(stdout, &mut output.stdout);
        let err = read_all(stderr, &mut output.stderr);
        tokio::try_join!(feed, out, err).map(|_| ())
    };
    let status = {
        tokio::pin!(pipes);
        tokio::select! {
            closed = pipes.as_mut() => {
                closed?;
                child.wait().await?
            }
            status = child.wait() => {
                if let Ok(closed) = tokio::time::timeout(LINGER, pipes).await {
                    closed?;
                }
                status?
            }
        }
    };
    output.status = status;
    Ok(output)
}

/// Reads to the end; given up half-way, what was read is in `into`.
async fn read_all(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> io::Result<()> {
    if let Some(mut pipe) = pipe {
        while pipe.read_buf(into).await? > 0 {}
    }
    Ok(())
}

/// The program's own arguments, for a debug line.
fn arguments_of(command: &Command) -> String {
    // The first two are for the second start of our own executable.
    let ours = if STARTS_ITSELF.get().is_some() { 2 } else { 0 };
    let arguments = command.as_std().get_args().skip(ours);
    let arguments: Vec<_> = arguments.map(OsStr::to_string_lossy).collect();
    arguments.join(" ")
}

/// Sends TERM to the program itself, not to its group: Terraform stops its providers in its own order.
pub fn terminate(child: &Child) {
    signal(child, Signal::TERM);
}

/// Sends KILL to the program.
pub fn kill(child: &Child) {
    signal(child, Signal::KILL);
}

fn signal(child: &Child, signal: Signal) {
    // No id: it has been waited for, so there is nothing left to signal.
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed()))
        && let Err(error) = rustix::process::kill_process(pid, signal)
    {
        tracing::debug!(%error, "the signal was not delivered");
    }
}

/// Kills what is left in the process group of a program that has ended: a wrapper script's children, a provider that
/// outlived Terraform.
pub fn kill_strays(group: Option<u32>) {
    if let Some(group) = group.and_then(|id| Pid::from_raw(id.cast_signed()))
        && let Err(error) = rustix::process::kill_process_group(group, Signal::KILL)
        && error != rustix::io::Errno::SRCH
    {
        tracing::debug!(%error, "the process group was not killed");
    }
}

/// Waits for what is left in the process group of a program that has ended, at most for `grace`, and kills the rest.
pub async fn end_group(group: Option<u32>, grace: Duration) {
    let give_up = tokio::time::Instant::now() + grace;
    while group.is_some_and(is_running) && tokio::time::Instant::now() < give_up {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    kill_strays(group);
}

/// Whether a process of this group runs; one that has ended and that nobody waited for does not.
fn is_running(group: u32) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    processes.flatten().any(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // `pid (name) state parent group …` (proc_pid_stat(5)).
        let Some((_, rest)) = stat.rsplit_once(')') else {
            return false;
        };
        let mut fields = rest.split_ascii_whitespace();
        let (state, group_of) = (fields.next(), fields.nth(1));
        state != Some("Z") && group_of.and_then(|g| g.parse().ok()) == Some(group)
    })
}

/// Closes our environment, memory and open files to other processes of the same user: what Terraform runs is not ours, and
/// we have credentials that it is not given. (A process with `CAP_SYS_PTRACE`, `CAP_PERFMON` or
/// `CAP_SYS_ADMIN` still sees them; a pod has these only on request.)
pub fn hide_from_children() {
    let hidden = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    if let Err(error) = hidden {
        tracing::warn!(%error, "the environment of this process can be read by others of the same user");
    }
}

/// Makes us the parent of what our children leave behind when they are killed, so that [`end_orphans`] finds it.
pub fn adopt_orphans() {
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::debug!(%error, "orphans go to init");
    }
}

/// Waits for the orphans of our children, and kills those that are still there after `grace`. To be called where
/// no child of our own runs.
pub async fn end_orphans(grace: Duration) {
    let patience = tokio::time::Instant::now() + grace;
    // The time that the system may take to carry out a KILL.
    let give_up = patience + Duration::from_secs(5);
    loop {
        let orphans = running_children();
        let now = tokio::time::Instant::now();
        if orphans.is_empty() || now >= give_up {
            return;
        }
        if now >= patience {
            for orphan in orphans {
                if let Err(error) = rustix::process::kill_process(orphan, Signal::KILL) {
                    tracing::debug!(%error, "an orphan was not killed");
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The processes whose parent we are, without those that have ended, which are waited for here.
fn running_children() -> Vec<Pid> {
    let me = rustix::process::getpid();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // `pid (name) state parent …`; the name may hold anything, parentheses too (proc_pid_stat(5)).
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?;
            (Pid::from_raw(parent.parse().ok()?) == Some(me)).then_some(pid)
        })
        .filter(|pid| {
            matches!(
                rustix::process::waitpid(Some(*pid), WaitOptions::NOHANG),
                Ok(None)
            )
        })
        .collect()
}

/// How a program ended: `ended with exit code 1`, `was killed by signal 9`.
pub fn end_in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

/// Finds `name` on PATH, or as a path where it has a slash. `None`: there is no such executable file.
pub fn find_program(name: &Path) -> Option<PathBuf> {
    let executable = |path: &Path| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if name.components().count() > 1 {
        return executable(name).then(|| absolute(name));
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| executable(path))
        .map(|path| absolute(&path))
}

/// A program is started in other folders than ours, where a relative path (PATH may hold some) leads elsewhere.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_program_leaves_running_with_its_pipes_open_is_not_waited_for() {
        let mut sh = command(Path::new("/bin/sh"));
        sh.args(["-c", "sleep 30 & cat; echo told >&2"]);
        let bound = Duration::from_secs(20);
        let output = capture(sh, "sh", b"given", bound).await.unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, b"given");
        assert_eq!(output.stderr, b"told\n");
    }

    #[tokio::test]
    async fn a_program_that_takes_too_long_is_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        let mut sh = command(Path::new("/bin/sh"));
        let script = "sleep 3600 & echo $! >\"$0.new\" && mv \"$0.new\" \"$0\"; wait";
        sh.args(["-c", script]).arg(&file);
        {
            let given_up = capture(sh, "sh", b"", Duration::from_secs(3600));
            tokio::pin!(given_up);
            while !file.exists() {
                let pause = Duration::from_millis(20);
                assert!(
                    tokio::time::timeout(pause, given_up.as_mut())
                        .await
                        .is_err()
                );
            }
        }
        let id = std::fs::read_to_string(&file).unwrap();
        let stat = format!("/proc/{}/stat", id.trim());
        // Gone, or ended and not waited for by whoever is its parent now.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[test]
    fn a_program_is_found_as_a_path_that_leads_to_it_from_every_folder() {
        let found = find_program(Path::new("tests/run")).unwrap();
        assert_eq!(
            found,
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run")
        );
        assert_eq!(find_program(Path::new("./Cargo.toml")), None);
    }
}
