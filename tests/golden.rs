//! Golden cases: each folder `fixtures/<job>/<case>/` is one run of a program, whose whole outcome is compared.
//! `fixtures/README.md` says what a case holds. `STAGEWRIGHT_BLESS=1` writes the outcome as the new expectation.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "golden/case.rs"]
mod case;
#[path = "golden/estate.rs"]
mod estate;
#[path = "golden/normal.rs"]
mod normal;
#[path = "golden/tools.rs"]
mod tools;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use stagewright::sandbox::{Reset, Sandbox};

use case::Case;
use tools::Tools;

/// The folders below `fixtures/` that hold cases, and the program that each is about.
const JOBS: &[(&str, &str)] = &[
    (
        "destroy-stage",
        env!("CARGO_BIN_EXE_stagewright-destroy-stage"),
    ),
    ("plan", env!("CARGO_BIN_EXE_stagewright-plan")),
    ("presync", env!("CARGO_BIN_EXE_presync")),
    (
        "registry-check",
        env!("CARGO_BIN_EXE_stagewright-registry-check"),
    ),
    (
        "register-producer",
        env!("CARGO_BIN_EXE_stagewright-register-producer"),
    ),
];

/// What all cases share.
struct Shared {
    /// Holds everything that the cases write.
    folder: tempfile::TempDir,
    tools: Tools,
    bless: bool,
}

impl Shared {
    /// The estate, unpacked once; each case works on a copy.
    fn sandbox(&self) -> std::path::PathBuf {
        self.folder.path().join("sandbox")
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(2);
    let shared = Arc::new(Shared {
        folder: tempfile::tempdir().unwrap(),
        tools: Tools::find(),
        bless: std::env::var_os("STAGEWRIGHT_BLESS").is_some_and(|value| value == "1"),
    });
    if !arguments.list {
        Sandbox::open(&shared.sandbox(), Reset::Fresh).unwrap();
    }
    let required = std::env::var_os("STAGEWRIGHT_TOOLS_REQUIRED").is_some_and(|value| value == "1");
    let mut trials = Vec::new();
    for (job, program) in JOBS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fixtures")
            .join(job);
        for case in Case::all(job, Path::new(program), &folder) {
            let shared = Arc::clone(&shared);
            let missing = shared.tools.missing(&case);
            let name = format!("{job}::{}", case.name);
            let trial = Trial::test(name, move || case.check(&shared).map_err(Into::into));
            trials.push(trial.with_ignored_flag(missing && !required));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
