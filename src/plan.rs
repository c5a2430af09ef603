//! Planning one stage: the facts are gathered, the plan's terms drawn from them ([`terms`]), presync launched, its log
//! followed, the outcome reported ([`outcome`]).

pub mod outcome;
pub mod terms;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use crate::forge::git::GitForge;
use crate::forge::{Forge, ForgeError};
use crate::git::history::{Located, Reach};
use crate::git::{Credentials, CredentialsError};
use crate::layout::Layout;
use crate::layout::LayoutError;
use crate::local::{self, Ended, LocalError};
use crate::names::{
    AppPath, BranchName, CommitPrefix, CommitSha, Namespace, RepoName, RepoUrl, StageName, Target,
};
use crate::registry::{Registry, RegistryError};
use crate::report::{self, Failure, Outcome, OutputError, Shown};
use crate::settings::{ForgeSettings, RunnerSettings, Settings, StateSource};
use crate::stop::Stop;
use crate::transport::follow::{Complete, Follower, LastLine};
use crate::transport::record::PlanRecord;
use crate::transport::request::{Estate, PlanRequest};

pub use outcome::PlanReport;
use outcome::{Progress, StatePlace};
use terms::{Given, Terms, TermsError, Tracked};

/// What the caller asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The stage.
    pub target: Target,
    /// Instead of the registry's.
    pub namespace: Option<Namespace>,
    /// Instead of the registry's.
    pub branch: Option<BranchName>,
    /// Instead of the branch's head.
    pub revision: Option<CommitPrefix>,
    /// Where a copy of the log goes.
    pub log: Option<PathBuf>,
    /// What changes mean for the exit code.
    pub on_changes: OnChanges,
}

/// What changes mean for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnChanges {
    /// A plan with changes is a success.
    Succeed,
    /// A plan with changes is refused (`--fail-on-changes`).
    Refuse,
}

/// Why a plan could not be made.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each variant is one room's error, documented there"
)]
pub enum PlanError {
    #[error("{what} in {} is not supported by this version, which plans with {instead}", file.display())]
    NotSupported {
        what: &'static str,
        instead: &'static str,
        file: PathBuf,
    },
    #[error("the credentials for git could not be read")]
    Credentials(#[from] CredentialsError),
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error("the registry could not be read")]
    ReadRegistry(#[source] ForgeError),
    #[error("the registry {place} is not valid")]
    Registry {
        place: String,
        #[source]
        source: RegistryError,
    },
    #[error("the registry {place} is not UTF-8 text")]
    RegistryEncoding { place: String },
    #[error(transparent)]
    Terms(#[from] TermsError),
    #[error("the state of {target} has no valid path")]
    StateKey {
        target: String,
        #[source]
        source: Box<LayoutError>,
    },
    #[error("{repo} has no {folder}/ at {commit}; {}", there_is("apps", .apps))]
    NoTerraform {
        repo: String,
        folder: String,
        commit: CommitSha,
        apps: Vec<String>,
    },
    #[error("{repo} has no {folder}/ at {commit}, so {stage} is no stage of it; {}", there_is("stages", .stages))]
    NoConfig {
        repo: String,
        folder: String,
        commit: CommitSha,
        stage: StageName,
        stages: Vec<String>,
    },
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

fn there_is(what: &str, names: &[String]) -> String {
    if names.is_empty() {
        format!("it has no {what} there")
    } else {
        format!("{what} that are there: {}", names.join(", "))
    }
}

impl PlanError {
    /// What it means for the exit code.
    fn outcome(&self) -> Outcome {
        match self {
            PlanError::Terms(TermsError::OtherSpelling { .. }) => Outcome::Refused,
            PlanError::NotSupported { .. }
            | PlanError::Terms(_)
            | PlanError::StateKey { .. }
            | PlanError::NoTerraform { .. }
            | PlanError::NoConfig { .. } => Outcome::Usage,
            PlanError::Forge(error) => match error {
                ForgeError::NoRepository { .. }
                | ForgeError::OtherSpelling { .. }
                | ForgeError::Absent(_)
                | ForgeError::NotReachable { .. } => Outcome::Refused,
                ForgeError::NoFile { .. }
                | ForgeError::Git { .. }
                | ForgeError::List { .. }
                | ForgeError::Scratch(_) => Outcome::Failed,
            },
            PlanError::Credentials(_)
            | PlanError::ReadRegistry(_)
            | PlanError::Registry { .. }
            | PlanError::RegistryEncoding { .. }
            | PlanError::Local(_)
            | PlanError::Output(_) => Outcome::Failed,
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Failure {
        Failure::new(error.outcome(), error)
    }
}

/// Plans the stage: says on standard error what is planned and what came of it, shows the log on standard output.
/// The report holds as much as was known when it ended, however it ended.
pub async fn run(wanted: &Wanted, settings: &Settings, stop: &mut Stop) -> PlanReport {
    let started = Instant::now();
    let mut progress = Progress::default();
    let end = carry_out(wanted, settings, stop, &mut progress).await;
    PlanReport::new(wanted, progress, started.elapsed(), end)
}

async fn carry_out(
    wanted: &Wanted,
    settings: &Settings,
    stop: &mut Stop,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    let mut shown = Shown::open(wanted.log.as_deref()).map_err(PlanError::from)?;
    let gathered = tokio::select! {
        gathered = gather(wanted, settings, progress) => gathered?,
        signal = stop.next() => return Ok(Outcome::of_stop(signal)),
    };
    let mut follower = Follower::default();
    let mut last_line = LastLine::default();
    let ended = local::run(
        &gathered.request.arguments(),
        &gathered.environment,
        stop,
        |piece| {
            let piece = follower.push(piece);
            last_line.push(&piece);
            shown.write(&piece)
        },
    )
    .await
    .map_err(PlanError::from)?;
    let (rest, followed) = follower.finish::<PlanRecord>();
    if let Err(error) = shown.write(&rest)
        && ended.stopped.is_none()
    {
        return Err(PlanError::Local(LocalError::Show(error)).into());
    }
    last_line.push(&rest);
    progress.last_line = last_line.finish();
    let (complete, record) = match &ended.summary {
        Some(summary) => followed.against(summary),
        None => (Complete::No(format!("presync {}", ended.end)), None),
    };
    Ok(conclude(wanted, &ended, complete, record, progress))
}

/// Judges a run that has ended.
fn conclude(
    wanted: &Wanted,
    ended: &Ended,
    complete: Complete,
    record: Option<PlanRecord>,
    progress: &mut Progress,
) -> Outcome {
    if !ended.complaints.is_empty() {
        report::note(&ended.complaints);
    }
    if let Some(left) = &ended.left {
        report::note(format_args!("left running: {left}"));
    }
    let class = ended.summary.as_ref().map(|summary| summary.class);
    let outcome = Outcome::of_run(class, &complete, ended.stopped);
    let has_changes = record.as_ref().is_some_and(|r| !r.changes.is_empty());
    progress.record = record;
    progress.complete = Some(complete);
    if outcome == Outcome::Done && has_changes && wanted.on_changes == OnChanges::Refuse {
        return Outcome::Refused;
    }
    outcome
}

/// What presync is launched with.
struct Gathered {
    request: PlanRequest,
    environment: BTreeMap<&'static str, String>,
}

/// Reads the registry and the forge, and says what is planned.
async fn gather(
    wanted: &Wanted,
    settings: &Settings,
    progress: &mut Progress,
) -> Result<Gathered, PlanError> {
    let target = &wanted.target;
    let forge = open_forge(settings)?;
    let sops_key = local_runner(settings)?;
    forge.canonical_name(&target.repo).await?;
    let registry = read_registry(&forge, settings).await?;
    let given = Given {
        namespace: wanted.namespace.clone(),
        branch: wanted.branch.clone(),
    };
    let known_url = forge.known_url(&target.repo);
    let terms = terms::draw(&registry, &known_url, target, given, &settings.layout)?;
    for warning in &terms.warnings {
        report::note(format_args!("warning: {warning}"));
    }
    progress.warnings.clone_from(&terms.warnings);
    report::heading("target", target);
    let Terms {
        namespace,
        namespace_from,
        tracked,
        tracked_from,
        ..
    } = &terms;
    report::heading("namespace", format_args!("{namespace} ({namespace_from})"));
    progress.namespace = Some(namespace.clone());
    if let Tracked::Branch(branch) = tracked {
        progress.branch = Some(branch.clone());
    }
    let (revision, revision_from) =
        resolve(&forge, wanted, settings, tracked, tracked_from).await?;
    report::heading("revision", format_args!("{revision} ({revision_from})"));
    progress.revision = Some(revision.clone());
    check_folders(&forge, wanted, settings, &revision).await?;

    let url = forge.fetch_url(&target.repo);
    report::heading("deploys from", &url);
    let state_url = state_url(&forge, settings);
    let state = &settings.state;
    let path = target.path.as_ref();
    let key = settings
        .layout
        .state_key(&state.prefix, &target.repo, path, &target.stage)
        .map_err(|source| PlanError::StateKey {
            target: target.to_string(),
            source: Box::new(source),
        })?;
    report::heading("state", &key);
    report::heading(
        "state in",
        format_args!("{state_url} (branch {})", state.branch),
    );
    progress.state = Some(StatePlace {
        repository: state_url.clone(),
        branch: state.branch.clone(),
        key,
    });
    report::heading("runner", "local: presync as a child of this job");
    let estate = Estate {
        state_url,
        state_branch: state.branch.clone(),
        state_prefix: state.prefix.clone(),
        layout: settings.layout.to_json(),
        terraform: settings
            .terraform
            .program
            .as_ref()
            .map(|program| program.display().to_string()),
    };
    let mut environment = estate.environment();
    if let Some(file) = sops_key {
        environment.insert("SOPS_AGE_KEY_FILE", file.display().to_string());
    }
    let request = PlanRequest {
        url,
        revision,
        stage: target.stage.clone(),
        namespace: namespace.clone(),
        path: target.path.clone(),
    };
    Ok(Gathered {
        request,
        environment,
    })
}

fn open_forge(settings: &Settings) -> Result<Forge, PlanError> {
    match &settings.forge {
        ForgeSettings::Git { root, known_as } => Ok(Forge::Git(GitForge::new(
            root.clone(),
            known_as.clone(),
            Credentials::from_environment()?,
        ))),
        ForgeSettings::GitHub { .. } => Err(PlanError::NotSupported {
            what: "forge.github",
            instead: "forge.git",
            file: settings.file.clone(),
        }),
    }
}

/// The local runner's age key file for sealed states.
fn local_runner(settings: &Settings) -> Result<Option<PathBuf>, PlanError> {
    match &settings.runner {
        RunnerSettings::Local { sops_age_key_file } => Ok(sops_age_key_file.clone()),
        RunnerSettings::Kubernetes { .. } => Err(PlanError::NotSupported {
            what: "runner.kubernetes",
            instead: "runner: local",
            file: settings.file.clone(),
        }),
    }
}

async fn read_registry(forge: &Forge, settings: &Settings) -> Result<Registry, PlanError> {
    let place = &settings.registry;
    let read = async {
        let head = forge.head(&place.repo, &place.branch).await?;
        forge.read(&place.repo, &head, &place.file).await
    };
    let bytes = read.await.map_err(PlanError::ReadRegistry)?;
    let shown = format!("{} of {} on {}", place.file, place.repo, place.branch);
    let text = String::from_utf8(bytes).map_err(|_| PlanError::RegistryEncoding {
        place: shown.clone(),
    })?;
    Registry::parse(&text, &place.file).map_err(|source| PlanError::Registry {
        place: shown,
        source,
    })
}

/// The commit that is planned, and where it came from in words.
async fn resolve(
    forge: &Forge,
    wanted: &Wanted,
    settings: &Settings,
    tracked: &Tracked,
    tracked_from: &str,
) -> Result<(CommitSha, String), PlanError> {
    let repo = &wanted.target.repo;
    let reach = if settings.plan.allow_unmerged {
        Reach::AnyBranch
    } else {
        Reach::TrackedBranch
    };
    Ok(match (tracked, &wanted.revision) {
        (Tracked::Branch(branch), Some(prefix)) => {
            match forge.commit(repo, branch, prefix, reach).await? {
                Located::OnBranch(commit) => (
                    commit,
                    format!("from --revision; on {branch}, {tracked_from}"),
                ),
                Located::Elsewhere(commit, branches) => {
                    let branches = branches.join(", ");
                    let from =
                        format!("from --revision; on {branches}, not on {branch}, {tracked_from}");
                    (commit, from)
                }
            }
        }
        (Tracked::Branch(branch), None) => {
            let head = forge.head(repo, branch).await?;
            (head, format!("the head of {branch}, {tracked_from}"))
        }
        (Tracked::Commit(_), Some(prefix)) => {
            let error = TermsError::NoBranch {
                prefix: prefix.clone(),
            };
            return Err(error.into());
        }
        (Tracked::Commit(commit), None) => (commit.clone(), tracked_from.to_owned()),
    })
}

/// Looks for the app's folders before anything is launched, so that a slip of the finger is told with the right names.
async fn check_folders(
    forge: &Forge,
    wanted: &Wanted,
    settings: &Settings,
    revision: &CommitSha,
) -> Result<(), PlanError> {
    let Target { repo, path, stage } = &wanted.target;
    let layout = &settings.layout;
    let terraform = layout.terraform_dir(repo, path.as_ref());
    let config = layout.config_dir(repo, path.as_ref(), stage);
    if !forge.has_folder(repo, revision, &terraform).await? {
        return Err(PlanError::NoTerraform {
            repo: repo.to_string(),
            folder: terraform,
            commit: revision.clone(),
            apps: apps_in(forge, repo, layout, revision).await?,
        });
    }
    if !forge.has_folder(repo, revision, &config).await? {
        let stages = config.rsplit_once('/').map_or("", |(parent, _)| parent);
        let stages = forge.folders_in(repo, revision, stages).await?;
        return Err(PlanError::NoConfig {
            repo: repo.to_string(),
            folder: config,
            commit: revision.clone(),
            stage: stage.clone(),
            stages,
        });
    }
    Ok(())
}

/// The apps of a repository: its root and its top-level folders, where they have a Terraform folder.
async fn apps_in(
    forge: &Forge,
    repo: &RepoName,
    layout: &Layout,
    revision: &CommitSha,
) -> Result<Vec<String>, PlanError> {
    let top = forge.folders_in(repo, revision, "").await?;
    let mut candidates: Vec<Option<AppPath>> = vec![None];
    candidates.extend(top.iter().filter_map(|name| name.parse().ok()).map(Some));
    let mut apps = Vec::new();
    for path in candidates {
        let folder = layout.terraform_dir(repo, path.as_ref());
        if forge.has_folder(repo, revision, &folder).await? {
            apps.push(path.map_or("the root".to_owned(), |path| path.to_string()));
        }
    }
    Ok(apps)
}

fn state_url(forge: &Forge, settings: &Settings) -> RepoUrl {
    match &settings.state.source {
        StateSource::Repo(repo) => forge.fetch_url(repo),
        StateSource::Url(url) => url.clone(),
    }
}
