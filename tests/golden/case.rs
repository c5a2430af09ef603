//! One case: its folder, its run, and the comparison.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use similar::TextDiff;

use super::normal::{Normal, own_lines};
use super::{Shared, estate};

/// What every case finds on its PATH.
const TOOLS: [&str; 2] = ["git", "terraform"];
/// The files that a run may leave in its working folder; the expectation has the same name.
const WRITTEN: [&str; 5] = [
    "result.json",
    "report.html",
    "report.md",
    "log",
    "termination",
];

pub struct Case {
    pub name: String,
    job: &'static str,
    program: PathBuf,
    folder: PathBuf,
    tools: BTreeSet<String>,
}

/// The folders of one run.
struct Places {
    home: PathBuf,
    sandbox: PathBuf,
    work: PathBuf,
    temporary: PathBuf,
    tools: PathBuf,
}

impl Case {
    /// The cases of one job, by name.
    pub fn all(job: &'static str, program: &Path, folder: &Path) -> Vec<Case> {
        let mut cases: Vec<Case> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                let folder = entry.unwrap().path();
                let mut tools = BTreeSet::from(TOOLS.map(str::to_owned));
                tools.extend(words(&folder.join("needs")));
                for lacking in words(&folder.join("lacks")) {
                    tools.remove(&lacking);
                }
                let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
                Case {
                    name,
                    job,
                    program: program.to_owned(),
                    folder,
                    tools,
                }
            })
            .collect();
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        cases
    }

    /// The programs that it finds on its PATH.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(String::as_str)
    }

    /// Runs it and compares, or writes the outcome down.
    pub fn check(&self, shared: &Shared) -> Result<(), String> {
        let home = shared.folder.path().join(self.job).join(&self.name);
        let places = Places {
            sandbox: home.join("sandbox"),
            work: home.join("work"),
            temporary: home.join("tmp"),
            tools: home.join("bin"),
            home,
        };
        self.lay_out(shared, &places)?;
        let put_there = names_below(&places.work);
        let output = self.command(&places).output().unwrap();
        let normal = Normal {
            paths: vec![
                (&places.sandbox, "[SANDBOX]"),
                (&places.work, "[WORK]"),
                (&places.temporary, "[TMP]"),
                (&places.tools, "[PATH]"),
                (&places.home, "[HOME]"),
            ],
            terraform_version: shared.tools.terraform(),
        };
        let exit = match output.status.code() {
            Some(code) => format!("{code}\n"),
            None => format!("{}\n", output.status),
        };
        let mut outcome = vec![
            ("exit", exit),
            ("stderr", normal.text(&output.stderr)),
            ("stdout", normal.text(&output.stdout)),
        ];
        for name in WRITTEN {
            let written = fs::read(places.work.join(name)).unwrap_or_default();
            outcome.push((name, normal.text(&written)));
        }
        let mut faults = if shared.bless {
            self.bless(&outcome);
            String::new()
        } else {
            self.compare(&outcome, shared.tools.words_are_comparable())
        };
        for name in names_below(&places.temporary) {
            if name.contains("stagewright-") {
                writeln!(faults, "{name} is left in TMPDIR").unwrap();
            }
        }
        for name in names_below(&places.work).difference(&put_there) {
            if !WRITTEN.contains(&name.as_str()) {
                writeln!(faults, "{name} is left in the working folder").unwrap();
            }
        }
        fs::remove_dir_all(&places.home).unwrap();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }

    fn lay_out(&self, shared: &Shared, places: &Places) -> Result<(), String> {
        fs::create_dir_all(&places.home).unwrap();
        fs::create_dir(&places.temporary).unwrap();
        shared.tools.link(self, &places.tools)?;
        copy_folder(&shared.sandbox(), &places.sandbox);
        let estate = self.folder.join("estate");
        if estate.is_dir() {
            estate::commit_all(&estate, &places.sandbox.join("git"), &|text| {
                filled(text, places)
            });
        }
        let applications = self.folder.join("applications.yaml");
        if applications.is_file() {
            fs::copy(applications, places.sandbox.join("applications.yaml")).unwrap();
        }
        let work = self.folder.join("work");
        if work.is_dir() {
            copy_folder(&work, &places.work);
        } else {
            fs::create_dir(&places.work).unwrap();
        }
        let settings = self.folder.join("settings.yaml");
        if settings.is_file() {
            let text = filled(&fs::read_to_string(settings).unwrap(), places);
            fs::write(places.work.join("stagewright.yaml"), text).unwrap();
        }
        Ok(())
    }

    fn command(&self, places: &Places) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", &places.tools)
            .env("HOME", &places.home)
            .env("TMPDIR", &places.temporary)
            .env("LANG", "C.UTF-8")
            .current_dir(&places.work);
        for line in text(&self.folder.join("args")).lines() {
            command.arg(filled(line, places));
        }
        for line in text(&self.folder.join("env")).lines() {
            let (name, value) = line.split_once('=').unwrap();
            command.env(name, filled(value, places));
        }
        command
    }

    fn compare(&self, outcome: &[(&str, String)], whole: bool) -> String {
        let mut faults = String::new();
        for (name, actual) in outcome {
            let mut expected = text(&self.folder.join(name));
            let mut actual = actual.clone();
            if matches!(*name, "stdout" | "log") && !whole {
                (expected, actual) = (own_lines(&expected), own_lines(&actual));
            }
            if expected != actual {
                let diff = TextDiff::from_lines(&expected, &actual);
                let mut diff = diff.unified_diff();
                let diff = diff
                    .header(&format!("expected {name}"), &format!("actual {name}"))
                    .to_string();
                faults.push_str(&diff);
            }
        }
        if !faults.is_empty() {
            writeln!(
                faults,
                "(STAGEWRIGHT_BLESS=1 takes what came as the expectation)"
            )
            .unwrap();
        }
        faults
    }

    /// An empty outcome has no file.
    fn bless(&self, outcome: &[(&str, String)]) {
        for (name, actual) in outcome {
            let file = self.folder.join(name);
            if !actual.is_empty() {
                fs::write(file, actual).unwrap();
            } else if file.exists() {
                fs::remove_file(file).unwrap();
            }
        }
    }
}

/// Fills in `{sandbox}`, `{work}`, and `{<Repo>@<branch>}`, the SHA of that branch's head (`…:8}`: its first 8 digits).
/// Other braces stay.
fn filled(text: &str, places: &Places) -> String {
    let mut pieces = text.split('{');
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let value = piece
            .split_once('}')
            .and_then(|(name, rest)| Some((value_of(name, places)?, rest)));
        match value {
            Some((value, rest)) => filled.extend([value.as_str(), rest]),
            None => filled.extend(["{", piece]),
        }
    }
    filled
}

fn value_of(name: &str, places: &Places) -> Option<String> {
    match name {
        "sandbox" => Some(places.sandbox.to_str()?.to_owned()),
        "work" => Some(places.work.to_str()?.to_owned()),
        head => {
            let (repo, branch) = head.split_once('@')?;
            let (branch, digits) = branch.split_once(':').unwrap_or((branch, "40"));
            let head = estate::head(&places.sandbox.join("git"), repo, branch)?;
            Some(head.get(..digits.parse().ok()?)?.to_owned())
        }
    }
}

/// A file of a case; one that is not there is empty.
fn text(file: &Path) -> String {
    if file.exists() {
        fs::read_to_string(file).unwrap()
    } else {
        String::new()
    }
}

fn words(file: &Path) -> Vec<String> {
    text(file).split_whitespace().map(str::to_owned).collect()
}

fn names_below(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
