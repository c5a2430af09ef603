//! The history check: many writers, killed at random, over a server with faults; and then nothing is lost, nothing is
//! there twice, and no state ever had two holders.
//!
//! A writer is this very program, called once more. `STAGEWRIGHT_HISTORY_SEED` says the faults and the KILLs of an earlier
//! run again, whose seed its line on stderr names; which process meets which of them is up to the machine.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

#[path = "history/client.rs"]
mod client;
#[path = "history/faults.rs"]
mod faults;
#[path = "support/git_http.rs"]
#[expect(dead_code, reason = "its clients may all leave out objects")]
mod git_http;
#[path = "history/judge.rs"]
mod judge;
#[path = "history/late.rs"]
mod late;
#[path = "history/ledger.rs"]
mod ledger;
#[path = "history/random.rs"]
mod random;
#[path = "support/repositories.rs"]
mod repositories;
#[path = "history/supervisor.rs"]
mod supervisor;
#[path = "support/tools.rs"]
mod tools;
#[path = "history/writer.rs"]
mod writer;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libtest_mimic::{Arguments, Failed, Trial};
use stagewright::child;

use faults::{DECLINE, OF_PUSHES, Script};
use git_http::{GitHttp, Options};
use supervisor::{Goal, Places, Supervisor};
use writer::Orders;

/// The first argument of a writer; its orders follow.
const AS_WRITER: &str = "--as-writer";
/// The first argument of a reader; the repository's URL and the states' keys follow.
const AS_READER: &str = "--as-reader";

const SMALL: Goal = Goal {
    writers: 8,
    kills: 3,
    writes: 12,
};
const WHOLE: Goal = Goal {
    writers: 8,
    kills: 20,
    writes: 80,
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(2);
    let first = std::env::args().nth(1);
    if first.as_deref() == Some(AS_READER) {
        return writer::read_all(&arguments.next().unwrap(), arguments);
    }
    if first.as_deref() == Some(AS_WRITER) {
        let orders = Orders::from_arguments(arguments);
        // As presync's own `main` does, so that its git dies with it; half of the writers leave theirs to live on, as a
        // push does that has left the machine.
        if orders.seed.is_multiple_of(2)
            && let Some(code) = child::become_program()
        {
            return code;
        }
        return writer::main(&orders);
    }
    if let Some(code) = child::become_program() {
        return code;
    }
    let arguments = Arguments::from_args();
    let whole = Trial::test(
        "no_write_is_lost_or_there_twice_and_no_state_has_two_holders",
        check,
    );
    let late = Trial::test(
        "a_write_that_arrives_after_its_lock_is_gone_is_not_lost_under_that_of_the_next_holder",
        || late::check().map_err(Into::into),
    );
    libtest_mimic::run(&arguments, vec![whole, late]).exit_code()
}

fn check() -> Result<(), Failed> {
    let found = |tool: &&str| child::find_program(tool.as_ref()).is_some();
    let found = ["sops", "age-keygen"].iter().all(found).then_some(());
    if tools::found_or_left_out("sops and age", "STAGEWRIGHT_TOOLS_REQUIRED", found).is_none() {
        return Ok(());
    }
    let seed = match std::env::var("STAGEWRIGHT_HISTORY_SEED") {
        Ok(seed) => seed.parse()?,
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
    };
    say(&format!("STAGEWRIGHT_HISTORY_SEED={seed}"));
    let (goal, bound) = if tools::is_on("STAGEWRIGHT_FULL") {
        (WHOLE, Duration::from_secs(900))
    } else {
        (SMALL, Duration::from_secs(300))
    };
    let folder = tempfile::tempdir()?;
    let script = Script::new(seed);
    let places = set_up(folder.path());
    let options = Options {
        between: Some(script.between()),
        ..Options::default()
    };
    let server = GitHttp::serve(folder.path(), options);
    let places = Places {
        url: format!("{}/state.git", server.url()),
        ..places
    };
    let mut supervisor = Supervisor::start(&places, goal, seed, bound);
    supervisor.run()?;
    script.end();
    supervisor.end()?;

    let lines = ledger::read(&places.ledger());
    let (states, mut faults) = judge::history(&places.repository(), &places.identity(), &lines);
    faults.extend(judge::holders(&lines));
    faults.extend(judge::repository(&places.repository()));
    faults.extend(unreadable(&places, &states));
    for entry in std::fs::read_dir(places.scratch())?.flatten() {
        faults.push(format!("{} is left", entry.path().display()));
    }
    let met = script.met();
    faults.extend(
        OF_PUSHES
            .iter()
            .filter(|fault| !met.contains_key(fault))
            .map(|fault| format!("no push met {fault:?}: this run proves too little")),
    );
    let count = |event| ledger::count(&lines, event);
    let refused: Vec<_> = lines.iter().filter(|line| line[0] == "refused").collect();
    say(&format!(
        "{} writes acknowledged ({} later), {} with a 5xx to the last, {} refused, {} not saved; {} locks taken, {} busy, {} failed, \
         {} reads failed, {} unlocks failed, {} locks left by the living; {} KILLs; {} pushes, of which met {met:?}, {} requests",
        count("written"),
        lines
            .iter()
            .filter(|line| line.last().is_some_and(|word| word == "later"))
            .count(),
        count("failed"),
        refused.len(),
        count("unsaved"),
        count("locked"),
        count("busy"),
        count("lock-failed"),
        count("get-failed"),
        count("unlock-failed"),
        supervisor.strays.len(),
        count("killed"),
        script.pushes(),
        server.requests(),
    ));
    if faults.is_empty() {
        return Ok(());
    }
    let ledger = std::fs::read_to_string(places.ledger())?;
    Err(format!("{}\n\nwhat was done:{ledger}", faults.join("\n")).into())
}

/// A line that is seen of a test that passes.
fn say(line: &str) {
    writeln!(std::io::stderr(), "history: {line}").ok();
}

/// The repository, whose hook declines what it is told to, and the identity that states are sealed for.
fn set_up(folder: &std::path::Path) -> Places {
    let mut places = Places {
        folder: folder.to_owned(),
        url: String::new(),
        recipient: String::new(),
    };
    std::fs::create_dir(places.scratch()).unwrap();
    let repository = places.repository();
    repositories::repository(&repository, "main", &[("README.md", "States.\n")]);
    // The machine may call a new repository's branch otherwise, and git remarks on a HEAD that points nowhere.
    std::fs::write(repository.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let hook = repository.join("hooks/pre-receive");
    std::fs::create_dir_all(repository.join("hooks")).unwrap();
    std::fs::write(
        &hook,
        format!("#!/bin/sh\n[ -z \"${DECLINE}\" ] || {{ echo no >&2; exit 1; }}\n"),
    )
    .unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let keys = Command::new("age-keygen").output().unwrap();
    let keys = String::from_utf8(keys.stdout).unwrap();
    let recipient = keys.lines().find_map(|l| l.strip_prefix("# public key: "));
    places.recipient = recipient.unwrap().to_owned();
    std::fs::write(places.identity(), keys).unwrap();
    places
}

/// The states that cannot be read in the end, by a reader that has the key.
fn unreadable(places: &Places, states: &[String]) -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let output = places
        .command(&program)
        .args([AS_READER, &places.url])
        .args(states)
        .output()
        .unwrap();
    if output.status.success() {
        return Vec::new();
    }
    vec![String::from_utf8_lossy(&output.stderr).into_owned()]
}
