//! One live Application: whether it deploys the target, certainly does not, or may.

use std::collections::BTreeSet;

use crate::applications::{Application, Source};
use crate::names::{AppPath, StageName};

use super::places::{self, Leads, ValueFile};
use super::reading::{self, Reading};
use super::{Look, Looked, Question};

/// What an Application is to the target.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// It has nothing to do with the target's repository, or provably deploys another path or stage of it.
    Cleared,
    /// It deploys the target.
    Deploys,
    /// Nothing proves that it does not. Each reason goes after "since".
    Unproven(Vec<String>),
}

/// How sure it is that the Application has to do with the target's repository.
pub(super) fn relation(application: &Application, question: &Question<'_>) -> Leads {
    let hook_repo = reading::read(application, &question.layout.hook_parameters().repo);
    let sources = application
        .sources
        .iter()
        .map(|source| question.leads(&source.repo_url));
    let mut texts = application.sources.iter().flat_map(texts);
    let may_name_it = hook_repo.is_filled_in
        || (!hook_repo.doubts.is_empty()
            && texts.any(|text| places::mentions(text, question.target)));
    let may_name_it = may_name_it || names_it_otherwise(application, question).is_some();
    let doubtful = may_name_it.then_some(Leads::Perhaps);
    let hook_repo = hook_repo.all.iter().map(|url| question.leads(url));
    let most = sources.chain(hook_repo).chain(doubtful).max();
    most.unwrap_or(Leads::Elsewhere)
}

/// Where the Application names the repository beside its sources and Helm's parameters: what it says there is not understood.
fn names_it_otherwise(application: &Application, question: &Question<'_>) -> Option<String> {
    let names_it = |text: &&String| places::names_it(text, question.target);
    application.sources.iter().find_map(|source| {
        let files = source.value_files.iter();
        let mut files = files.chain(source.file_parameters.values());
        if let Some(file) = files.find(|file| file.contains("://") && names_it(file)) {
            return Some(format!("it takes values from {file}"));
        }
        let named = source.other_texts.iter().any(|text| names_it(&text));
        named.then(|| {
            format!(
                "what its plugin, Kustomize or directory is told names {}",
                question.target.repo
            )
        })
    })
}

/// Every text of a source in which the repository of a hook could be named.
fn texts(source: &Source) -> impl Iterator<Item = &str> {
    let parameters = source.parameters.values().flatten();
    parameters
        .chain(source.file_parameters.values())
        .chain(&source.values_object)
        .chain(&source.values)
        .map(String::as_str)
}

/// The folders of the target's repository from which Argo CD renders this Application, at their revisions. A source that
/// only lends its value files is not rendered.
pub(super) fn rendered<'a>(
    application: &'a Application,
    question: &Question<'_>,
) -> Vec<(&'a Source, Option<Look>)> {
    let rendered = |source: &&Source| {
        question.leads(&source.repo_url) != Leads::Elsewhere
            && source.chart.is_none()
            && (source.path.is_some() || source.reference.is_none())
    };
    let look = |source: &'a Source| {
        let folder = places::within("", source.path.as_deref().unwrap_or_default());
        let look = folder.map(|folder| Look {
            revision: source.target_revision.clone().unwrap_or_default(),
            folder,
        });
        (source, look)
    };
    application
        .sources
        .iter()
        .filter(rendered)
        .map(look)
        .collect()
}

/// `stages` are the app's, as the registry has them.
pub(super) fn judge(
    application: &Application,
    question: &Question<'_>,
    stages: &BTreeSet<StageName>,
) -> Judged {
    let relation = relation(application, question);
    if relation == Leads::Elsewhere {
        return Judged::Cleared;
    }
    let names = question.layout.hook_parameters();
    let stage = reading::read(application, &names.stage);
    let path = reading::read(application, &names.path);
    let facts = Facts::gather(application, question);
    if relation == Leads::There && says_target(&stage, &path, question) {
        return Judged::Deploys;
    }
    let mut reasons: BTreeSet<String> = stage.doubts.iter().chain(&path.doubts).cloned().collect();
    reasons.extend(facts.references(question));
    reasons.extend(overrides(application, question));
    reasons.extend(names_it_otherwise(application, question));
    if application.sources.iter().any(|source| source.has_plugin)
        && !facts.are_outside(question.target.path.as_ref())
    {
        reasons.insert("a plugin renders it, which need not heed Helm's parameters".to_owned());
    }
    if reasons.is_empty() && !proves_another(&stage, &path, &facts, question, stages) {
        reasons.insert(silence(&stage, &path, relation, question));
    }
    if reasons.is_empty() {
        Judged::Cleared
    } else {
        Judged::Unproven(reasons.into_iter().collect())
    }
}

/// The app's folder that a hook parameter names; empty for the root of the repository.
fn folder_of(value: &str) -> String {
    places::within("", value).unwrap_or_else(|| value.to_owned())
}

fn app_folder(path: Option<&AppPath>) -> &str {
    path.map_or("", AppPath::as_str)
}

/// Whether the hook runs for the target: without a path it runs for the root of the repository.
fn says_target(stage: &Reading, path: &Reading, question: &Question<'_>) -> bool {
    let wanted = app_folder(question.target.path.as_ref());
    let path_fits = if path.effective.is_empty() {
        path.doubts.is_empty() && wanted.is_empty()
    } else {
        path.effective.iter().any(|path| folder_of(path) == wanted)
    };
    stage.effective.contains(question.target.stage.as_str()) && path_fits
}

/// What the Application takes from the target's repository.
struct Facts {
    /// The folders that are rendered; `None` for one that leads out of the repository.
    folders: Vec<Option<String>>,
    files: Vec<ValueFile>,
}

impl Facts {
    fn gather(application: &Application, question: &Question<'_>) -> Facts {
        let rendered = rendered(application, question);
        let folders = rendered.into_iter().map(|(_, look)| look.map(|l| l.folder));
        let leads = |url: &str| question.leads(url);
        let files = application
            .sources
            .iter()
            .flat_map(|source| places::value_files(application, source, leads, question.target))
            .filter(|file| *file != ValueFile::Elsewhere);
        Facts {
            folders: folders.collect(),
            files: files.collect(),
        }
    }

    /// Every place of the repository that it names, `None` for one that is not clear.
    fn places(&self) -> impl Iterator<Item = Option<&str>> {
        let files = self.files.iter().map(|file| match file {
            ValueFile::Here(path) => Some(path.as_str()),
            ValueFile::Unclear(_) | ValueFile::Elsewhere => None,
        });
        self.folders.iter().map(Option::as_deref).chain(files)
    }

    /// Why it may be that it uses the stage's own configuration.
    fn references(&self, question: &Question<'_>) -> Vec<String> {
        let target = question.target;
        let config = question
            .layout
            .config_dir(&target.repo, target.path.as_ref(), &target.stage);
        let mut reasons = Vec::new();
        for folder in self.folders.iter() {
            match folder {
                Some(folder) if places::is_in(folder, &config) => {
                    reasons.push(format!("it is rendered from {folder}/"));
                }
                Some(_) => {}
                None => reasons.push("its path leads out of the repository".to_owned()),
            }
        }
        for file in &self.files {
            match file {
                ValueFile::Here(path) if places::is_in(path, &config) => {
                    reasons.push(format!("it takes values from {path}"));
                }
                ValueFile::Unclear(file) => {
                    reasons.push(format!("it is not clear where its value file {file} lies"));
                }
                ValueFile::Here(_) | ValueFile::Elsewhere => {}
            }
        }
        reasons
    }

    fn are_outside(&self, path: Option<&AppPath>) -> bool {
        let mut places = self.places().peekable();
        places.peek().is_some()
            && places.all(|place| place.is_some_and(|place| places::is_outside(place, path)))
    }

    /// Whether there are value files, each in the folder of another stage of the same app. A folder that is no registered stage's
    /// may be one that all stages share.
    fn are_of_another_stage(&self, question: &Question<'_>, stages: &BTreeSet<StageName>) -> bool {
        let target = question.target;
        let of_another = |file: &ValueFile| match file {
            ValueFile::Here(path) => question
                .layout
                .stage_of_config(&target.repo, target.path.as_ref(), path)
                .is_some_and(|stage| stage != target.stage && stages.contains(&stage)),
            ValueFile::Unclear(_) | ValueFile::Elsewhere => false,
        };
        !self.files.is_empty() && self.files.iter().all(of_another)
    }
}

/// Whether something proves that the Application deploys another path or stage. What the hook is told goes before where its
/// files lie: two that contradict one another prove nothing.
fn proves_another(
    stage: &Reading,
    path: &Reading,
    facts: &Facts,
    question: &Question<'_>,
    stages: &BTreeSet<StageName>,
) -> bool {
    let target = question.target;
    let wanted = app_folder(target.path.as_ref());
    let other_stage = stage.certain().map(|stage| stage != target.stage.as_str());
    let other_path = path.certain().map(|path| folder_of(path) != wanted);
    if other_stage == Some(true) || other_path == Some(true) {
        return true;
    }
    let apart = |place: Option<&str>| {
        place.is_some_and(|place| {
            place.is_empty() || places::is_outside(place, target.path.as_ref())
        })
    };
    // A hook that is told a stage and no path runs for the root.
    let of_the_root = target.path.is_some() && other_stage.is_some() && path.is_absent();
    let elsewhere = other_path.is_none() && facts.are_outside(target.path.as_ref());
    let files_of_another = other_stage.is_none() && facts.are_of_another_stage(question, stages);
    (of_the_root && facts.places().all(apart)) || elsewhere || files_of_another
}

/// Why nothing is proven where nothing is doubtful either.
fn silence(stage: &Reading, path: &Reading, relation: Leads, question: &Question<'_>) -> String {
    if relation == Leads::Perhaps && says_target(stage, path, question) {
        return format!(
            "it deploys this stage from a repository that may be another one of the name {}, whose states lie at the same \
             place",
            question.target.repo
        );
    }
    let names = question.layout.hook_parameters();
    let missing: Vec<&str> = [(stage, &names.stage), (path, &names.path)]
        .into_iter()
        .filter(|(reading, _)| reading.is_absent())
        .map(|(_, name)| name.as_str())
        .collect();
    match missing.as_slice() {
        [] => "its parameters and its files contradict one another".to_owned(),
        names => format!(
            "it has no {} and nothing else that tells",
            names.join(" and no ")
        ),
    }
}

/// What Argo CD merges from the repository into the Application when it renders it
/// (<https://argo-cd.readthedocs.io/en/stable/user-guide/parameters/#store-overrides-in-git>).
fn overrides(application: &Application, question: &Question<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    for (source, look) in rendered(application, question) {
        let Some(look) = look else {
            continue;
        };
        let at = match source.target_revision.as_deref() {
            None | Some("") => "HEAD",
            Some(revision) => revision,
        };
        let folder = if look.folder.is_empty() {
            "its folder, the repository's root,".to_owned()
        } else {
            format!("its folder {}", look.folder)
        };
        match question.looked.get(&look) {
            Some(Looked::Names(names)) => {
                let merged = names.iter().filter(|name| is_merged(name, application));
                reasons.extend(merged.map(|name| format!("{folder} has {name} at {at}")));
            }
            Some(Looked::Unknown(why)) => {
                reasons.push(format!("{folder} could not be looked into at {at}: {why}"));
            }
            None => reasons.push(format!("{folder} was not looked into at {at}")),
        }
    }
    reasons
}

/// Whether Argo CD merges this file into this Application. One outside of Argo CD's own namespace is named with its namespace
/// there.
fn is_merged(file: &str, application: &Application) -> bool {
    let Some(rest) = file
        .strip_prefix(".argocd-source")
        .and_then(|rest| rest.strip_suffix(".yaml"))
    else {
        return false;
    };
    let full = format!("-{}_{}", application.namespace, application.name);
    rest.is_empty() || rest == full || rest.strip_prefix('-') == Some(&application.name)
}
