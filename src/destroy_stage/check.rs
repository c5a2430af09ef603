//! The step `check`: whether the stage is deployed by nothing any more. It gathers the facts, and the guard judges.

use std::collections::{BTreeMap, BTreeSet};

use crate::applications::Application;
use crate::estate::live::{self, LiveError};
use crate::estate::{check_settings_names, open_forge, read_registry};
use crate::forge::Forge;
use crate::guard::{self, Asker, Cleared, Look, Looked, Question, Refusal};
use crate::names::{RepoName, RepoUrl};
use crate::registry::Registry;
use crate::report;
use crate::settings::{ApplicationsSettings, Settings, SettingsOrigin};

use super::result::{CheckedInstance, Progress};
use super::{DestroyError, Wanted};

/// What was read on the way to the judgement, and the judgement.
pub(super) struct Checked {
    pub(super) cleared: Cleared,
    pub(super) forge: Forge,
    pub(super) registry: Registry,
    /// The addresses by which the target's repository is known.
    pub(super) addresses: [RepoUrl; 2],
    /// The repository for people.
    pub(super) repo: String,
}

/// Reads the registry and the live Applications, and has the guard judge.
pub(super) async fn check(
    wanted: &Wanted,
    settings: &Settings,
    progress: &mut Progress,
) -> Result<Checked, DestroyError> {
    let target = &wanted.target;
    let applications = applications_of(settings)?;
    let forge = open_forge(settings)?;
    report::heading("target", target);
    let spelled = forge.canonical_name(&target.repo).await;
    spelled.map_err(|error| DestroyError::of_target(error, wanted.asker()))?;
    // The end of it all is a commit there.
    forge.takes_commits(&target.repo).await?;
    check_settings_names(&forge, settings).await?;
    let addresses = [forge.known_url(&target.repo), forge.fetch_url(&target.repo)];
    report::heading("known as", &addresses[0]);
    let registry = read_registry(&forge, settings).await?;
    let place = &settings.registry;
    let registry_place = format!("{}'s {} on {}", place.repo, place.file, place.branch);
    report::heading("registry", &registry_place);
    let instances = live::read(applications, settings, Application::read).await?;
    progress.instances = instances.iter().map(CheckedInstance::from).collect();
    for fault in registry.faults().iter().filter(|fault| !fault.hides) {
        progress.warn(fault.to_string());
    }
    let repo = addresses[0].full_name();
    let nothing = BTreeMap::new();
    let mut question = Question {
        target,
        addresses: &addresses,
        repo: &repo,
        registry_place: &registry_place,
        layout: &settings.layout,
        looked: &nothing,
        not_deploying: &wanted.not_deploying,
        asker: wanted.asker(),
    };
    let places = guard::places_to_look(&question, &instances);
    let looked = look(&forge, &target.repo, places).await;
    question.looked = &looked;
    let judged = guard::judge(&question, &registry, &instances);
    let looked_at = match &judged {
        Ok(cleared) => Some(cleared.looked_at()),
        Err(Refusal::Deployed(deployed)) => Some(deployed.looked_at),
        Err(Refusal::Hidden { .. } | Refusal::NotUnproven { .. }) => None,
    };
    if let Some(looked_at) = looked_at {
        report::heading("applications", looked_at);
    }
    progress.judged(&judged);
    Ok(Checked {
        cleared: judged?,
        forge,
        registry,
        addresses,
        repo,
    })
}

impl Wanted {
    /// Who asks, for the guard's sentences.
    fn asker(&self) -> Asker {
        match self.build {
            Some(_) => Asker::Build,
            None => Asker::Person,
        }
    }
}

/// A file has no age, and one that is cut off looks whole: only a sandbox's is believed.
fn applications_of(settings: &Settings) -> Result<&ApplicationsSettings, LiveError> {
    match live::of(settings)? {
        ApplicationsSettings::File(_) if settings.origin != SettingsOrigin::Sandbox => {
            Err(LiveError::FileOutsideSandbox {
                file: settings.file.clone(),
            })
        }
        applications => Ok(applications),
    }
}

/// Looks into the folders from which Applications are rendered. One that cannot be looked into is told to the guard, which
/// clears nothing then.
async fn look(forge: &Forge, repo: &RepoName, places: BTreeSet<Look>) -> BTreeMap<Look, Looked> {
    let mut revisions = BTreeMap::new();
    let mut looked = BTreeMap::new();
    for place in places {
        if !revisions.contains_key(&place.revision) {
            let commits = forge.revision(repo, &place.revision).await;
            revisions.insert(place.revision.clone(), commits);
        }
        let found = match revisions.get(&place.revision) {
            Some(Ok(commits)) if commits.is_empty() => {
                Looked::Unknown("no branch, tag or commit can be told by that".to_owned())
            }
            Some(Ok(commits)) => {
                let mut names = Vec::new();
                let mut fault = None;
                for commit in commits {
                    match forge.files_in(repo, commit, &place.folder).await {
                        Ok(Some(files)) => names.extend(files),
                        Ok(None) => fault = Some("it is no folder there".to_owned()),
                        Err(error) => fault = Some(report::one_line(&error)),
                    }
                }
                fault.map_or(Looked::Names(names), Looked::Unknown)
            }
            Some(Err(error)) => Looked::Unknown(report::one_line(error)),
            None => Looked::Unknown("the revision was not looked for".to_owned()),
        };
        looked.insert(place, found);
    }
    looked
}
