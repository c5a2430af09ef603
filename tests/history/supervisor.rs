//! Starts the writers, kills some of them, starts others in their place, and gives back what the dead have held.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::ledger::{self, Ledger, Line};
use crate::random::Random;
use crate::writer::Orders;

/// How long writers may take to finish what they are at. git gives up on a dead line after two minutes.
const PATIENCE: Duration = Duration::from_secs(150);

/// Where everything is.
pub struct Places {
    /// Holds everything below.
    pub folder: PathBuf,
    pub url: String,
    pub recipient: String,
}

impl Places {
    pub fn repository(&self) -> PathBuf {
        self.folder.join("state.git")
    }

    pub fn ledger(&self) -> PathBuf {
        self.folder.join("ledger")
    }

    pub fn identity(&self) -> PathBuf {
        self.folder.join("identity")
    }

    pub fn scratch(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    fn stop(&self) -> PathBuf {
        self.folder.join("stop")
    }

    /// A program of ours with nothing in its environment but what it needs.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.folder)
            .env("TMPDIR", self.scratch())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("STAGEWRIGHT_STATE_URL", &self.url)
            .env("SOPS_AGE_RECIPIENTS", &self.recipient)
            .env("SOPS_AGE_KEY_FILE", self.identity())
            .stdin(Stdio::null());
        command
    }
}

struct Writer {
    number: usize,
    incarnation: usize,
    child: Child,
}

impl Writer {
    fn start(places: &Places, number: usize, incarnation: usize, seed: u64) -> Writer {
        let name = format!("{number}.{incarnation}");
        let orders = Orders {
            name: name.clone(),
            url: places.url.clone(),
            ledger: places.ledger(),
            stop: places.stop(),
            seed,
        };
        let said = File::create(places.folder.join(format!("writer-{name}"))).unwrap();
        let child = places
            .command(&std::env::current_exe().unwrap())
            .arg(crate::AS_WRITER)
            .args(orders.to_arguments())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .unwrap();
        Writer {
            number,
            incarnation,
            child,
        }
    }

    fn name(&self) -> String {
        format!("{}.{}", self.number, self.incarnation)
    }
}

/// What a run is to come to.
#[derive(Clone, Copy)]
pub struct Goal {
    pub writers: usize,
    pub kills: usize,
    /// Acknowledged writes.
    pub writes: usize,
}

pub struct Supervisor<'a> {
    places: &'a Places,
    goal: Goal,
    random: Random,
    writers: Vec<Writer>,
    ledger: Ledger,
    killed: BTreeSet<String>,
    /// Locks that were given back for another reason than a KILL.
    pub strays: BTreeSet<String>,
    deadline: Instant,
}

impl<'a> Supervisor<'a> {
    /// `bound` only ends a run that would hang.
    pub fn start(places: &'a Places, goal: Goal, seed: u64, bound: Duration) -> Supervisor<'a> {
        let mut random = Random(seed);
        let writers = (0..goal.writers)
            .map(|number| Writer::start(places, number, 0, random.next()))
            .collect();
        Supervisor {
            places,
            goal,
            random,
            writers,
            ledger: Ledger::open(&places.ledger()),
            killed: BTreeSet::new(),
            strays: BTreeSet::new(),
            deadline: Instant::now() + bound,
        }
    }

    /// Until the goal is reached: the KILLs come at random, spread over the whole run.
    pub fn run(&mut self) -> Result<(), String> {
        let mut kills: Vec<usize> = (0..self.goal.kills)
            .map(|_| self.random.below(self.goal.writes))
            .collect();
        kills.sort_unstable();
        kills.reverse();
        loop {
            let lines = ledger::read(&self.places.ledger());
            let written = ledger::count(&lines, "written");
            while kills.last().is_some_and(|at| *at <= written) {
                kills.pop();
                self.kill_one();
            }
            if written >= self.goal.writes {
                return Ok(());
            }
            self.release(&lines);
            for writer in &mut self.writers {
                if let Some(status) = writer.child.try_wait().unwrap() {
                    return Err(self.ended(status));
                }
            }
            if Instant::now() > self.deadline {
                return Err(format!("only {written} writes were made in time"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn ended(&self, status: ExitStatus) -> String {
        let mut text = format!("a writer ended by itself: {status}");
        for writer in &self.writers {
            let file = self.places.folder.join(format!("writer-{}", writer.name()));
            text.push_str(&std::fs::read_to_string(file).unwrap());
        }
        text
    }

    fn kill_one(&mut self) {
        std::thread::sleep(Duration::from_millis(self.random.next() % 500));
        let at = self.random.below(self.writers.len());
        let seed = self.random.next();
        let writer = &mut self.writers[at];
        writer.child.kill().unwrap();
        writer.child.wait().unwrap();
        let name = writer.name();
        self.ledger.note(&["killed", &name]);
        let (number, incarnation) = (writer.number, writer.incarnation + 1);
        self.writers[at] = Writer::start(self.places, number, incarnation, seed);
        self.killed.insert(name);
    }

    /// Gives back each lock of a killed writer, and each of a living one that is through with it. How many stood.
    fn release(&mut self, lines: &[Line]) -> usize {
        let over: BTreeSet<&str> = lines
            .iter()
            .filter(|line| line[0] == "over")
            .map(|line| line[1].as_str())
            .collect();
        let standing = self.standing();
        for (id, key) in &standing {
            let dead = id
                .split('-')
                .next()
                .is_some_and(|w| self.killed.contains(w));
            if !dead && !over.contains(id.as_str()) {
                continue;
            }
            if !dead {
                self.strays.insert(id.clone());
            }
            self.ledger.note(&["releasing", id, key]);
            // What does not work now is tried again with the next look.
            self.presync(&["unlock", key, "--lock-id", id]);
        }
        standing.len()
    }

    fn presync(&self, arguments: &[&str]) -> ExitStatus {
        self.places
            .command(Path::new(env!("CARGO_BIN_EXE_presync")))
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap()
    }

    /// The locks of the repository: (ID, key), read on the server's side.
    fn standing(&self) -> Vec<(String, String)> {
        let git = |arguments: &[&str]| {
            let output = Command::new("git")
                .arg("--git-dir")
                .arg(self.places.repository())
                .args(arguments)
                .stderr(Stdio::null())
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let keys = git(&[
            "for-each-ref",
            "--format=%(refname:lstrip=3)",
            "refs/heads/locks",
        ]);
        keys.lines()
            .filter_map(|key| {
                let document = git(&[
                    "cat-file",
                    "-p",
                    &format!("refs/heads/locks/{key}:{key}.lock"),
                ]);
                // Given back in between.
                let document: serde_json::Value = serde_json::from_str(&document).ok()?;
                Some((document["ID"].as_str()?.to_owned(), key.to_owned()))
            })
            .collect()
    }

    /// Lets the writers finish, and gives back what is left.
    pub fn end(&mut self) -> Result<(), String> {
        File::create(self.places.stop()).unwrap();
        let deadline = Instant::now() + PATIENCE;
        while let Some(writer) = self.writers.last_mut() {
            match writer.child.try_wait().unwrap() {
                Some(status) if status.success() => {
                    self.writers.pop();
                }
                Some(status) => return Err(self.ended(status)),
                None if Instant::now() > deadline => {
                    return Err(format!("writer {} does not end", writer.name()));
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        // Pushes of the dead may still be on their way; a second without a lock is taken for their end.
        let mut quiet = 0;
        while quiet < 5 {
            let lines = ledger::read(&self.places.ledger());
            quiet = if self.release(&lines) == 0 {
                quiet + 1
            } else {
                0
            };
            if Instant::now() > deadline {
                return Err("a lock is left that cannot be given back".to_owned());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        // It removes what killed ones have left in TMPDIR.
        if !self.presync(&["locks"]).success() {
            return Err("presync locks failed".to_owned());
        }
        Ok(())
    }
}

impl Drop for Supervisor<'_> {
    fn drop(&mut self) {
        for writer in &mut self.writers {
            // Both fail only for one that has ended.
            writer.child.kill().ok();
            writer.child.wait().ok();
        }
    }
}
