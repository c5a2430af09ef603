//! Reading the registry and the forge: everything that a plan needs to be launched.

use std::collections::BTreeMap;

use crate::cluster::job::Launch;
use crate::estate::{check_settings_names, open_forge, read_registry, state_url};
use crate::forge::Forge;
use crate::git::history::{Located, Reach};
use crate::layout::Layout;
use crate::names::{AppPath, CommitSha, Namespace, RepoName, Target};
use crate::report;
use crate::runner::Runner;
use crate::settings::Settings;
use crate::transport::request::StageRequest;

use super::result::{Progress, StatePlace};
use super::terms::{self, Given, Terms, TermsError, Tracked};
use super::{PlanError, Wanted};

/// What presync is launched with, and by what.
pub(super) struct Gathered {
    pub(super) request: StageRequest,
    pub(super) namespace: Namespace,
    pub(super) environment: BTreeMap<&'static str, String>,
    pub(super) runner: Runner,
}

/// Reads the registry and the forge, and says what is planned.
pub(super) async fn gather(
    wanted: &Wanted,
    settings: &Settings,
    progress: &mut Progress,
) -> Result<Gathered, PlanError> {
    let target = &wanted.target;
    let forge = open_forge(settings)?;
    let runner = Runner::open(settings).await?;
    forge.canonical_name(&target.repo).await?;
    check_settings_names(&forge, settings).await?;
    let registry = read_registry(&forge, settings).await?;
    let given = Given {
        namespace: wanted.namespace.clone(),
        branch: wanted.branch.clone(),
    };
    let known_url = forge.known_url(&target.repo);
    let terms = terms::draw(&registry, &known_url, target, given, &settings.layout)?;
    for warning in &terms.warnings {
        progress.warn(warning.clone());
    }
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
    runner.say(&Launch::plan_name(namespace));
    let environment = runner.environment(settings, state_url);
    let request = StageRequest {
        url,
        revision,
        stage: target.stage.clone(),
        path: target.path.clone(),
    };
    Ok(Gathered {
        request,
        namespace: namespace.clone(),
        environment,
        runner,
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
