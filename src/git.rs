//! The git program: remotes, their credentials, and how a command is run. Everything that is read goes through a
//! partial clone in a private folder: [`tree`] fetches levels of trees, [`history`] fetches commits alone,
//! [`checkout`] writes files out, [`write`](mod@write) makes commits and pushes them.

pub mod checkout;
pub mod history;
pub mod trailers;
pub mod tree;
pub mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use git2::{Repository, RepositoryInitOptions};
use tokio::process::Command;

use crate::child::{self, ChildError};
use crate::names::{BranchName, CommitSha, NameError, RepoUrl};

/// The name of a clone's one remote.
const ORIGIN: &str = "origin";
/// How long one git command may take. A fetch of a large history over a slow line fits; a dead line does not hang.
const BOUND: Duration = Duration::from_secs(300);

/// What can go wrong between us and a git repository.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program is not there.
    #[error("there is no git on PATH: install git 2.39 or newer")]
    NoGit,
    /// git ran and failed; what it said is the source.
    #[error("{act} failed")]
    Failed {
        /// What was being done, to which repository.
        act: String,
        /// git's own words.
        #[source]
        said: GitSaid,
    },
    /// git could not be run to its end.
    #[error("{act} failed")]
    Child {
        /// What was being done, to which repository.
        act: String,
        /// Why.
        #[source]
        source: ChildError,
    },
    /// The remote has no such branch.
    #[error("{url} has no branch {branch}; it has {}", list_or_none(.branches))]
    NoBranch {
        /// The repository.
        url: RepoUrl,
        /// The branch that was asked for.
        branch: BranchName,
        /// Some of the branches that it has.
        branches: Vec<String>,
    },
    /// No commit of that name.
    #[error("{url} has no commit {commit} on any branch")]
    NoCommit {
        /// The repository.
        url: RepoUrl,
        /// The commit, or its first digits.
        commit: String,
    },
    /// More than one commit begins so.
    #[error("more than one commit of {url} begins with {prefix}: give more digits")]
    Ambiguous {
        /// The repository.
        url: RepoUrl,
        /// The first digits that were given.
        prefix: String,
    },
    /// What git printed is not what its documentation promises.
    #[error("{act}: git printed something that is not understood: {text}")]
    Unexpected {
        /// What was being done.
        act: String,
        /// The odd part.
        text: String,
    },
    /// An object that was fetched could not be read.
    #[error("{act} failed")]
    Object {
        /// What was being done, to which repository.
        act: String,
        /// What libgit2 said.
        #[source]
        source: git2::Error,
    },
    /// A name in the repository that we cannot or must not use.
    #[error("{act}: {text}")]
    Refused {
        /// What was being done.
        act: String,
        /// What stands in the way, and what would lift it.
        text: String,
    },
    /// A file of the clone could not be written.
    #[error("{} could not be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// The words of git itself, on one line.
#[derive(Debug, thiserror::Error)]
#[error("git said: {0}")]
pub struct GitSaid(String);

fn list_or_none(names: &[String]) -> String {
    if names.is_empty() {
        "none at all".to_owned()
    } else {
        names.join(", ")
    }
}

/// A user and a password or token for git over HTTP. Handed to git in its environment alone, never in an argument or URL.
#[derive(Clone)]
pub struct Credentials {
    /// The user name; forges that take tokens ignore it.
    pub username: String,
    /// The password or token.
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(hidden)")
    }
}

impl Credentials {
    /// Reads `GIT_USERNAME` with `GIT_PASSWORD`, or `GITHUB_TOKEN`, each also as `…_FILE` with the value in a file
    /// (the names that terraform-backend-git uses). `None`: there are none, git goes without.
    pub fn from_environment() -> Result<Option<Credentials>, CredentialsError> {
        let password = match variable_or_file("GIT_PASSWORD")? {
            Some(password) => Some(password),
            None => variable_or_file("GITHUB_TOKEN")?,
        };
        // The user that GitHub documents for tokens; others ignore it.
        let username = variable_or_file("GIT_USERNAME")?.unwrap_or("x-access-token".to_owned());
        Ok(password.map(|password| Credentials { username, password }))
    }
}

/// The file that a `…_FILE` variable names could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{variable} names {}, which could not be read", file.display())]
pub struct CredentialsError {
    variable: String,
    file: PathBuf,
    #[source]
    source: std::io::Error,
}

/// A variable's value, or the trimmed content of the file that its `_FILE` form names. An empty value is none.
pub fn variable_or_file(name: &str) -> Result<Option<String>, CredentialsError> {
    if let Some(value) = std::env::var(name).ok().filter(|v| !v.is_empty()) {
        return Ok(Some(value));
    }
    let variable = format!("{name}_FILE");
    match std::env::var_os(&variable).filter(|v| !v.is_empty()) {
        None => Ok(None),
        Some(file) => {
            let file = PathBuf::from(file);
            match std::fs::read_to_string(&file) {
                Ok(text) => Ok(Some(text.trim().to_owned()).filter(|t| !t.is_empty())),
                Err(source) => Err(CredentialsError {
                    variable,
                    file,
                    source,
                }),
            }
        }
    }
}

/// A repository somewhere else, and what it takes to read it.
#[derive(Clone, Debug)]
pub struct Remote {
    url: RepoUrl,
    credentials: Option<Credentials>,
}

impl Remote {
    /// `credentials` are offered to the host of `url` alone.
    pub fn new(url: RepoUrl, credentials: Option<Credentials>) -> Remote {
        Remote { url, credentials }
    }

    /// Where it is.
    pub fn url(&self) -> &RepoUrl {
        &self.url
    }

    /// Every branch and its head.
    pub async fn heads(&self) -> Result<BTreeMap<String, CommitSha>, GitError> {
        self.heads_below("").await
    }

    /// The branches whose names begin with `prefix`, which ends with a slash or is empty, and their heads.
    pub async fn heads_below(&self, prefix: &str) -> Result<BTreeMap<String, CommitSha>, GitError> {
        let refs = self.refs_below(&[&format!("refs/heads/{prefix}")]).await?;
        let branches = refs.into_iter().filter_map(|(name, sha)| {
            let branch = name.strip_prefix("refs/heads/")?;
            Some((branch.to_owned(), sha))
        });
        Ok(branches.collect())
    }

    /// The refs whose names begin with one of these, each from `refs/` on and with a slash at its end, and where they are; asked for once.
    pub async fn refs_below(
        &self,
        namespaces: &[&str],
    ) -> Result<BTreeMap<String, CommitSha>, GitError> {
        let act = format!("reading the branches of {}", self.url);
        let patterns: Vec<String> = namespaces.iter().map(|below| format!("{below}*")).collect();
        let mut refs = self.refs(&act, &patterns).await?;
        // git takes a pattern for the end of a name.
        refs.retain(|name, _| namespaces.iter().any(|below| name.starts_with(below)));
        Ok(refs)
    }

    /// Where one ref (`refs/heads/…`) is. `None`: it is not there.
    pub async fn reference(&self, name: &str) -> Result<Option<CommitSha>, GitError> {
        let act = format!("reading {name} of {}", self.url);
        let mut refs = self.refs(&act, &[name.to_owned()]).await?;
        Ok(refs.remove(name))
    }

    /// The commits that a revision as Argo CD takes it can mean: a branch, a tag, a full id, and the remote's own head where it is
    /// empty or `HEAD`. None: it means none that can be told, such as a range of versions.
    pub async fn revision(&self, revision: &str) -> Result<BTreeSet<CommitSha>, GitError> {
        if let Ok(commit) = revision.parse::<CommitSha>() {
            return Ok(BTreeSet::from([commit]));
        }
        let names = match revision {
            "" | "HEAD" => vec!["HEAD".to_owned()],
            // Here they would be patterns.
            text if text.contains(['*', '?', '[', '\\']) => return Ok(BTreeSet::new()),
            text => ["refs/heads/", "refs/tags/", ""]
                .map(|below| format!("{below}{text}"))
                .to_vec(),
        };
        let act = format!("reading the branches and tags of {}", self.url);
        let mut git = self.git(None)?;
        git.args(["ls-remote", "--", self.url.as_str()]);
        for name in &names {
            git.arg(name).arg(format!("{name}^{{}}"));
        }
        let output = run(git, &act, b"").await?;
        let text = String::from_utf8_lossy(&output);
        let refs = text.lines().map(|line| {
            let (sha, name) = line
                .split_once('\t')
                .ok_or_else(|| unexpected(&act, line))?;
            Ok((name, sha))
        });
        let refs = refs.collect::<Result<BTreeMap<&str, &str>, GitError>>()?;
        let mut commits = BTreeSet::new();
        for name in &names {
            // An annotated tag is an object of its own, beside the commit that it tags.
            let peeled = refs.get(format!("{name}^{{}}").as_str());
            if let Some(sha) = peeled.or(refs.get(name.as_str())) {
                commits.insert(parse_sha(&act, sha)?);
            }
        }
        Ok(commits)
    }

    async fn refs(
        &self,
        act: &str,
        patterns: &[String],
    ) -> Result<BTreeMap<String, CommitSha>, GitError> {
        let mut git = self.git(None)?;
        git.args(["ls-remote", "--refs", "--", self.url.as_str()]);
        git.args(patterns);
        let output = run(git, act, b"").await?;
        let text = String::from_utf8_lossy(&output);
        text.lines()
            .map(|line| {
                let (sha, name) = line.split_once('\t').ok_or_else(|| unexpected(act, line))?;
                Ok((name.to_owned(), parse_sha(act, sha)?))
            })
            .collect()
    }

    /// The head of one branch.
    pub async fn head(&self, branch: &BranchName) -> Result<CommitSha, GitError> {
        let mut heads = self.heads().await?;
        heads
            .remove(branch.as_str())
            .ok_or_else(|| GitError::NoBranch {
                url: self.url.clone(),
                branch: branch.clone(),
                branches: heads.into_keys().take(10).collect(),
            })
    }

    /// A git command, hermetic but for the user's own git configuration; in the repository `folder` where there is one.
    fn git(&self, folder: Option<&Path>) -> Result<Command, GitError> {
        let mut git = plain_git(folder)?;
        if let (Some(credentials), Some(host)) = (&self.credentials, self.url.host_scope()) {
            let helper = format!("credential.{host}.helper");
            // The first, empty value drops every helper of the user's for this host; the second reads our variables.
            configure(
                &mut git,
                SETTINGS
                    .iter()
                    .copied()
                    .chain([(helper.as_str(), ""), (helper.as_str(), HELPER)]),
            );
            git.env("STAGEWRIGHT_GIT_USERNAME", &credentials.username);
            git.env("STAGEWRIGHT_GIT_PASSWORD", &credentials.password);
        }
        Ok(git)
    }
}

/// A credential helper that answers from the environment (<https://git-scm.com/docs/gitcredentials#_custom_helpers>).
const HELPER: &str = "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \
                      \"$STAGEWRIGHT_GIT_USERNAME\" \"$STAGEWRIGHT_GIT_PASSWORD\"; }; f";

/// What no git of ours may do: run hooks, start maintenance, follow `ext::` URLs, wait for a silent server.
const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.ext.allow", "never"),
    // A killed git leaves its transport helper behind, which would wait for a silent server for ever. In bytes per
    // second, and seconds; a server that is at work says so every five (uploadpack.keepAlive).
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "120"),
    // With the default negotiation git would tell the server of commits whose trees we never had.
    ("fetch.negotiationAlgorithm", "noop"),
];

/// Hands git its configuration in the environment, so that it stands in no argument list
/// (<https://git-scm.com/docs/git-config#ENVIRONMENT>).
fn configure<'s>(git: &mut Command, settings: impl Iterator<Item = (&'s str, &'s str)>) {
    let mut count = 0;
    for (key, value) in settings {
        git.env(format!("GIT_CONFIG_KEY_{count}"), key);
        git.env(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    git.env("GIT_CONFIG_COUNT", count.to_string());
}

/// The caller's variables that git keeps: how it reaches a server, and where the user's own configuration is. Every other
/// `GIT_…` may point it to another repository, trace what is secret, or change a format.
const KEPT: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_PROXY_COMMAND",
    "GIT_HTTP_PROXY_AUTHMETHOD",
    "GIT_PROXY_SSL_CAINFO",
    "GIT_PROXY_SSL_CERT",
    "GIT_PROXY_SSL_KEY",
];
/// Variables of other names that git must not see.
const DROPPED: &[&str] = &["GITHUB_TOKEN", "SSH_ASKPASS"];

/// git without a prompt, without hooks, without the caller's `GIT_…` variables that point it elsewhere.
fn plain_git(folder: Option<&Path>) -> Result<Command, GitError> {
    let program = child::find_program(Path::new("git")).ok_or(GitError::NoGit)?;
    let mut git = child::command(&program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let kept = KEPT.contains(&text.as_ref()) || text.starts_with("GIT_SSL_");
        if (text.starts_with("GIT_") && !kept) || DROPPED.contains(&text.as_ref()) {
            git.env_remove(&name);
        }
    }
    git.env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_SSH_COMMAND", ssh_command())
        .env("LC_ALL", "C");
    configure(&mut git, SETTINGS.iter().copied());
    if let Some(folder) = folder {
        git.arg("--git-dir").arg(folder);
    }
    Ok(git)
}

/// The caller's ssh command, or plain ssh; either way without questions.
fn ssh_command() -> std::ffi::OsString {
    std::env::var_os("GIT_SSH_COMMAND")
        .filter(|v| !v.is_empty())
        .unwrap_or_else(|| "ssh -oBatchMode=yes".into())
}

/// An empty bare repository in `folder`, which is made, with `remote` as its `origin` for partial fetches.
fn init_bare(remote: &Remote, folder: &Path) -> Result<Repository, GitError> {
    let make = || {
        let mut options = RepositoryInitOptions::new();
        // The machine's own template could bring hooks along.
        options.bare(true).no_reinit(true).external_template(false);
        let repository = Repository::init_opts(folder, &options)?;
        let mut config = repository.config()?;
        config.set_str("remote.origin.url", remote.url().as_str())?;
        config.set_bool("remote.origin.promisor", true)?;
        Ok(repository)
    };
    make().map_err(|source| GitError::Object {
        act: format!("preparing a clone of {}", remote.url()),
        source,
    })
}

async fn run(command: Command, act: &str, input: &[u8]) -> Result<Vec<u8>, GitError> {
    let secrets = secrets_of(&command);
    let output = child::capture(command, "git", input, BOUND)
        .await
        .map_err(|source| GitError::Child {
            act: act.to_owned(),
            source,
        })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    Err(GitError::Failed {
        act: act.to_owned(),
        said: GitSaid(masked(said.join("; "), &secrets)),
    })
}

/// What a server might send back of the credentials that this command was given: the password, and the form in which HTTP
/// carries it.
fn secrets_of(command: &Command) -> Vec<String> {
    let value = |wanted: &str| {
        let mut variables = command.as_std().get_envs();
        let found = variables.find(|(name, _)| *name == wanted)?;
        Some(found.1?.to_string_lossy().into_owned())
    };
    let Some(password) = value("STAGEWRIGHT_GIT_PASSWORD").filter(|p| !p.is_empty()) else {
        return Vec::new();
    };
    let user = value("STAGEWRIGHT_GIT_USERNAME").unwrap_or_default();
    vec![STANDARD.encode(format!("{user}:{password}")), password]
}

fn masked(text: String, secrets: &[String]) -> String {
    let mask = |text: String, secret: &String| text.replace(secret.as_str(), "***");
    secrets.iter().fold(text, mask)
}

fn unexpected(act: &str, text: &str) -> GitError {
    GitError::Unexpected {
        act: act.to_owned(),
        text: text.escape_debug().take(200).collect(),
    }
}

fn parse_sha(act: &str, text: &str) -> Result<CommitSha, GitError> {
    text.trim()
        .parse()
        .map_err(|_: NameError| unexpected(act, text))
}
