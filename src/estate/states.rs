//! What the state repository holds: which stages have a state, who holds which, what was brought to safety there. It is read from
//! GitHub by its API, and from everywhere else by git, with as few requests for many states as for one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use git2::Oid;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::forge::{Forge, ForgeError};
use crate::git::tree::{Entry, Extent, Found, Kind, PartialClone};
use crate::git::{Credentials, CredentialsError, GitError, Remote};
use crate::layout::Layout;
use crate::names::{CommitSha, RepoName, StateKey, Target};
use crate::scratch::{Scratch, ScratchError};
use crate::settings::{RunnerSettings, Settings, StateSettings, StateSource};
use crate::state_backend::locks::{self, Held, LOCKS};
use crate::state_backend::seal::{self, SealError};
use crate::state_backend::store::around::PROOFS;
use crate::terraform::inventory::Inventory;
use crate::terraform::state::{StateError, StateHead};

use super::state_url;

const RESCUES: &str = "refs/heads/rescue/";
/// How many requests, or runs of sops, are under way at once.
const AT_ONCE: usize = 4;
/// How many states are in memory at once.
const BATCH: usize = 64;
/// By one of these sops is given an age key.
const AGE_KEYS: [&str; 4] = [
    "SOPS_AGE_KEY",
    "SOPS_AGE_KEY_FILE",
    "SOPS_AGE_KEY_CMD",
    "SOPS_AGE_SSH_PRIVATE_KEY_FILE",
];

/// Why the state repository could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StatesError {
    /// By the forge.
    #[error(transparent)]
    Forge(#[from] ForgeError),
    /// By git.
    #[error("the state repository could not be read")]
    Git(#[from] GitError),
    /// The environment names credentials that cannot be read.
    #[error("the credentials for git could not be read")]
    Credentials(#[from] CredentialsError),
    /// No private folder for a clone.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
}

/// What the state repository holds.
#[derive(Debug, Default)]
pub struct StateListing {
    /// The head of the states' branch.
    pub head: Option<CommitSha>,
    /// Every state, in the order of their keys.
    pub states: Vec<StateFile>,
    /// Every lock, in the order of their branches.
    pub locks: Vec<Held>,
    /// Every state that could not be written to its place.
    pub rescues: Vec<Rescue>,
    /// The commits by which destroys removed a state, as their proof.
    pub destroyed: BTreeMap<StateKey, CommitSha>,
    /// What else lies below the prefix.
    pub strangers: Vec<String>,
}

/// A state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFile {
    /// Where it lies.
    pub key: StateKey,
    /// Whose it is.
    pub target: Target,
    /// Its content.
    pub blob: Oid,
}

/// A branch that holds a state which could not be written to its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescue {
    /// Its whole name: `rescue/<key>/<serial>`.
    pub branch: String,
    /// The state; none where the name holds no key.
    pub key: Option<StateKey>,
    /// Its serial; none where the name holds none.
    pub serial: Option<u64>,
}

/// How many managed resources a state lists.
#[derive(Debug)]
pub enum Resources {
    /// So many.
    Exactly(usize),
    /// No more than so many: it is sealed, and data sources and resources look alike.
    AtMost {
        /// So many are listed, data sources among them.
        most: usize,
        /// Why it was not opened; none where there is no key to try.
        source: Option<SealError>,
    },
}

/// A state whose resources cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// It carries the mark of sops and is nothing of sops'.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// It is no state.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Reads the state repository of the settings.
pub struct StateReader<'a> {
    source: Source<'a>,
    state: &'a StateSettings,
    layout: &'a Layout,
    /// The file of age keys that the settings name.
    keys: Option<PathBuf>,
}

enum Source<'a> {
    /// One of GitHub's repositories.
    Api(&'a Forge, &'a RepoName),
    /// Any other. The folder goes with the clone.
    Git(
        Box<Mutex<PartialClone>>,
        #[expect(dead_code, reason = "it is removed when it is dropped")] Scratch,
    ),
}

impl<'a> StateReader<'a> {
    /// Asks nothing yet.
    pub fn open(forge: &'a Forge, settings: &'a Settings) -> Result<StateReader<'a>, StatesError> {
        let source = match (forge, &settings.state.source) {
            (Forge::GitHub(_), StateSource::Repo(repo)) => Source::Api(forge, repo),
            _ => {
                let credentials = Credentials::from_environment()?;
                let remote = Remote::new(state_url(forge, settings), credentials);
                let scratch = Scratch::new()?;
                let clone = PartialClone::init(remote, scratch.path().join("state.git"))?;
                Source::Git(Box::new(Mutex::new(clone)), scratch)
            }
        };
        Ok(StateReader {
            source,
            state: &settings.state,
            layout: &settings.layout,
            keys: match &settings.runner {
                RunnerSettings::Local { sops_age_key_file } => sops_age_key_file.clone(),
                RunnerSettings::Kubernetes(_) => None,
            },
        })
    }

    /// Lists what is there; no state is read.
    pub async fn list(&self) -> Result<StateListing, StatesError> {
        let (head, files) = self.files().await?;
        let mut listing = StateListing {
            head: Some(head),
            ..StateListing::default()
        };
        let prefix = self.state.prefix.as_str();
        for entry in files {
            let path = match prefix {
                "" => entry.name,
                prefix => format!("{prefix}/{}", entry.name),
            };
            let key = path.parse::<StateKey>().ok();
            let key = key.filter(|_| matches!(entry.kind, Kind::File { .. }));
            let state = key.and_then(|key| {
                let target = self.layout.target_of_state(prefix, &key)?;
                let blob = entry.id;
                Some(StateFile { key, target, blob })
            });
            match state {
                Some(state) => listing.states.push(state),
                None => listing.strangers.push(path),
            }
        }
        listing.states.sort_by(|one, other| one.key.cmp(&other.key));
        listing.strangers.sort();
        let mut branches = Vec::new();
        for (name, sha) in self.refs().await? {
            if let Some(lock) = name.strip_prefix(LOCKS) {
                branches.push((lock.to_owned(), sha));
            } else if let Some(rescued) = name.strip_prefix(RESCUES) {
                listing.rescues.push(Rescue::of(rescued));
            } else if let Some(Ok(key)) = name.strip_prefix(PROOFS).map(str::parse) {
                listing.destroyed.insert(key, sha);
            }
        }
        listing.locks = self.locks(&branches).await?;
        Ok(listing)
    }

    /// Counts what these states list. They are fetched at once by git, one by one from GitHub. Sealed ones are opened where there is
    /// a key to try; one that is not opened is counted by what is in the clear.
    pub async fn counts(
        &self,
        states: &[&StateFile],
    ) -> Result<BTreeMap<StateKey, Result<Resources, CountError>>, StatesError> {
        let ids: Vec<Oid> = states.iter().map(|state| state.blob).collect();
        if let Source::Git(clone, _) = &self.source {
            clone.lock().await.fetch_blobs(&ids).await?;
        }
        let mut counts = BTreeMap::new();
        for batch in states.chunks(BATCH) {
            let ids: Vec<Oid> = batch.iter().map(|state| state.blob).collect();
            let contents = match &self.source {
                Source::Api(forge, repo) => forge.contents(repo, &ids).await?,
                Source::Git(clone, _) => clone.lock().await.blobs(&ids).await?,
            };
            let counted = batch.iter().map(|state| {
                let content = contents.get(&state.blob).map(Vec::as_slice);
                async move {
                    (
                        state.key.clone(),
                        self.count(content.unwrap_or_default()).await,
                    )
                }
            });
            let counted = stream::iter(counted).buffer_unordered(AT_ONCE);
            counts.extend(counted.collect::<Vec<_>>().await);
        }
        Ok(counts)
    }

    async fn count(&self, document: &[u8]) -> Result<Resources, CountError> {
        if !seal::is_sealed(document)? {
            return exactly(document);
        }
        let source = match self.has_key_for(document) {
            false => None,
            true => match seal::open_with(document, self.keys.as_deref()).await {
                Ok(opened) => return exactly(&opened),
                Err(error @ SealError::Binary) => return Err(error.into()),
                Err(error) => Some(error),
            },
        };
        let most = in_the_clear(document)?;
        Ok(Resources::AtMost { most, source })
    }

    /// Whether sops has something to try: an age key that was handed over, or another service than age, whose credentials are
    /// wherever that service has them.
    fn has_key_for(&self, document: &[u8]) -> bool {
        let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        self.keys.is_some() || AGE_KEYS.iter().any(set) || is_sealed_by_a_service(document)
    }

    /// The branch's head, and every file below the prefix by its path below it.
    async fn files(&self) -> Result<(CommitSha, Vec<Entry>), StatesError> {
        let StateSettings { branch, prefix, .. } = self.state;
        match &self.source {
            Source::Api(forge, repo) => {
                let head = forge.head(repo, branch).await?;
                let files = forge.everything_in(repo, &head, prefix).await?;
                Ok((head, files))
            }
            Source::Git(clone, _) => {
                let mut clone = clone.lock().await;
                let head = clone.head(branch, Extent::TopTree).await?;
                let files = match clone.find(&head, prefix).await? {
                    Found::Entry(entry) if entry.kind == Kind::Tree => {
                        clone.below(entry.id).await?
                    }
                    _ => Vec::new(),
                };
                Ok((head.sha, files))
            }
        }
    }

    async fn refs(&self) -> Result<BTreeMap<String, CommitSha>, StatesError> {
        let of = [LOCKS, RESCUES, PROOFS];
        match &self.source {
            Source::Api(forge, repo) => Ok(forge.refs_below(repo, &of).await?),
            Source::Git(clone, _) => Ok(clone.lock().await.remote().refs_below(&of).await?),
        }
    }

    async fn locks(&self, branches: &[(String, CommitSha)]) -> Result<Vec<Held>, StatesError> {
        let (forge, repo) = match &self.source {
            Source::Api(forge, repo) => (forge, repo),
            Source::Git(clone, _) => {
                return Ok(locks::read(&mut *clone.lock().await, branches).await?);
            }
        };
        let read = branches.iter().map(|(name, sha)| async move {
            let file = locks::document_of(name);
            match forge.read(repo, sha, &file).await {
                Ok(content) => Ok(Held::of(name, Some(&content))),
                Err(ForgeError::NoFile { .. }) => Ok(Held::of(name, None)),
                Err(error) => Err(StatesError::Forge(error)),
            }
        });
        stream::iter(read).buffered(AT_ONCE).try_collect().await
    }
}

impl Rescue {
    /// Of what stands behind `rescue/`. A second one of the same serial ends with `-2`.
    fn of(name: &str) -> Rescue {
        let (key, serial) = name.rsplit_once('/').unwrap_or((name, ""));
        let serial = serial.split('-').next().and_then(|text| text.parse().ok());
        Rescue {
            branch: format!("rescue/{name}"),
            key: serial.and_then(|_: u64| key.parse().ok()),
            serial,
        }
    }
}

fn exactly(state: &[u8]) -> Result<Resources, CountError> {
    StateHead::read(state)?;
    let inventory = Inventory::read(state)?;
    Ok(Resources::Exactly(inventory.instances().len()))
}

/// Of a sealed state only the structure is in the clear: the lists keep their lengths.
#[derive(Deserialize)]
struct Sealed {
    #[serde(default)]
    resources: Vec<SealedResource>,
}

#[derive(Deserialize)]
struct SealedResource {
    #[serde(default)]
    instances: Vec<serde::de::IgnoredAny>,
}

fn in_the_clear(document: &[u8]) -> Result<usize, CountError> {
    if seal::is_binary_sealed(document) {
        return Err(SealError::Binary.into());
    }
    let sealed: Sealed = serde_json::from_slice(document).map_err(StateError::NotAState)?;
    Ok(sealed.resources.iter().map(|r| r.instances.len()).sum())
}

fn is_sealed_by_a_service(document: &[u8]) -> bool {
    let document: Value = serde_json::from_slice(document).unwrap_or_default();
    let services = ["kms", "gcp_kms", "azure_kv", "hc_vault", "hckms", "pgp"];
    let has = |of: &Value| services.iter().any(|name| of[*name].is_array());
    let groups = document["sops"]["key_groups"].as_array();
    has(&document["sops"]) || groups.is_some_and(|groups| groups.iter().any(has))
}
