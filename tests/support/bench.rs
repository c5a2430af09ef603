//! A root module's folder, a state repository, and `presync` between them, in a bare environment.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Where the tests keep their state.
pub const KEY: &str = "argocd/FieldnotesDeploy/dev/terraform.tfstate";

/// `states.git` (its branch `main` holds a README), `root/`, `tmp/`, and whatever a test puts beside them.
pub struct Bench {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Run {
    /// Its exit code; one that a signal ended has the signal's number, negative.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Run {
    /// Standard output of a run that must have succeeded.
    pub fn done(self) -> String {
        assert_eq!(self.code, 0, "{self:#?}");
        self.stdout
    }

    /// Whether either stream holds `words`, however its lines are broken and framed.
    pub fn says(&self, words: &str) -> bool {
        let text = format!("{}\n{}", self.stdout, self.stderr);
        let plain: Vec<&str> = text.split_whitespace().filter(|w| *w != "│").collect();
        plain.join(" ").contains(words)
    }
}

/// Runs a command to its end.
pub fn ended(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output
            .status
            .code()
            .unwrap_or_else(|| -output.status.signal().unwrap()),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Bench {
    /// With this as the root's `main.tf`; an empty one makes no file.
    pub fn new(main: &str) -> Bench {
        let folder = tempfile::Builder::new().prefix("bench-").tempdir().unwrap();
        for name in ["states.git", "root", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let mut bench = Bench {
            folder,
            variables: Vec::new(),
        };
        bench.git(&["init", "--quiet", "--bare", "-b", "main"]);
        bench.git(&["config", "uploadpack.allowFilter", "true"]);
        bench.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        bench.commit("main", "Begin", None, "README.md", "The states.\n");
        bench.set(
            "STAGEWRIGHT_STATE_URL",
            &format!("file://{}", bench.states().display()),
        );
        if !main.is_empty() {
            bench.write_root(main);
        }
        bench
    }

    /// The folder of everything.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The state repository.
    pub fn states(&self) -> PathBuf {
        self.path().join("states.git")
    }

    /// Replaces the root's `main.tf`.
    pub fn write_root(&self, main: &str) {
        std::fs::write(self.path().join("root/main.tf"), main).unwrap();
    }

    /// The names in the root's folder.
    pub fn root_names(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.path().join("root")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// Sets a variable of every program that is run from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Takes a variable back.
    pub fn unset(&mut self, name: &str) {
        self.variables.retain(|(known, _)| known != name);
    }

    /// A program in the root's folder.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path())
            .env("TMPDIR", self.path().join("tmp"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("CHECKPOINT_DISABLE", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.path().join("root"))
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Run {
        ended(self.command(program).args(arguments))
    }

    /// Runs `presync`.
    pub fn presync(&self, arguments: &[&str]) -> Run {
        self.run(env!("CARGO_BIN_EXE_presync"), arguments)
    }

    /// Runs `presync backend KEY`: `words` is what follows, from the options on.
    pub fn backend(&self, words: &str) -> Run {
        let arguments: Vec<&str> = ["backend", KEY]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        self.presync(&arguments)
    }

    /// Runs git in the state repository.
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_with(arguments, "")
    }

    fn git_with(&self, arguments: &[&str], input: &str) -> String {
        let mut git = self.command("git");
        git.args(arguments)
            .current_dir(self.states())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut git = git.spawn().unwrap();
        let mut stdin = git.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        let output = git.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Makes a commit that sets one file, on top of `from`, the head of `branch`.
    pub fn commit(&self, branch: &str, message: &str, from: Option<&str>, path: &str, text: &str) {
        let from = from.map(|from| format!("from refs/heads/{from}^0\n"));
        let stream = format!(
            "commit refs/heads/{branch}\ncommitter Ada <ada@example.com> 1700000000 +0000\ndata {}\n{message}\n{}M 100644 inline {path}\ndata {}\n{text}\n",
            message.len(),
            from.unwrap_or_default(),
            text.len(),
        );
        self.git_with(&["fast-import", "--quiet"], &stream);
    }

    /// Puts a state at `KEY`.
    pub fn put_state(&self, text: &str) {
        self.commit("main", "Put", Some("main"), KEY, text);
    }

    /// The document at `KEY` as it is kept.
    pub fn kept(&self) -> String {
        self.git(&["show", &format!("main:{KEY}")])
    }

    /// How many commits `main` has.
    pub fn commits(&self) -> usize {
        self.git(&["log", "--format=%h", "main"]).lines().count()
    }

    /// Locks a state as terraform-backend-git does: the branch `locks/<key>` from main's head, the document in `<key>.lock`.
    pub fn lock(&self, key: &str, document: &str) {
        self.commit(
            &format!("locks/{key}"),
            &format!("Lock {key}"),
            Some("main"),
            &format!("{key}.lock"),
            document,
        );
    }

    /// The branches of locks.
    pub fn locks(&self) -> Vec<String> {
        let all = self.git(&[
            "for-each-ref",
            "--format=%(refname:lstrip=2)",
            "refs/heads/locks",
        ]);
        all.lines().map(str::to_owned).collect()
    }
}
