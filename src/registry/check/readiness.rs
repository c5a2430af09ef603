//! Whether a stage is ready at the current revision.
//!
//! Argo CD has no observed generation: an Application goes on saying `Synced` and `Healthy` after a push, until it is
//! compared again. So a stage counts as ready only when what was compared is what it is set to, at the head of its branch.

use std::collections::BTreeMap;

use crate::applications::observed::{Compared, Observed};
use crate::findings::Finding;
use crate::layout::Layout;
use crate::registry::{App, Stage};

use super::READINESS;
use super::promise::DEFAULT_BRANCH;

/// What is asked of a deploy repository: whether two commits have the same in some folders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Comparison {
    /// The repository's URL, as the entry has it.
    pub repo: String,
    /// The branch whose head is the other commit.
    pub branch: String,
    /// The commit that was compared, or synced.
    pub commit: String,
    /// The folders, relative to the repository.
    pub folders: Vec<String>,
}

/// What a deploy repository says of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// The head of each branch of each repository, or why it is not known.
    pub heads: BTreeMap<(String, String), Result<String, String>>,
    /// What was asked, and whether it is so.
    pub same: BTreeMap<Comparison, bool>,
}

/// A stage and its Application.
pub type Deployed<'a> = (&'a App, &'a Stage, &'a Observed);

/// The branch that a stage tracks.
pub fn branch(stage: &Stage) -> &str {
    stage.target_revision.as_deref().unwrap_or(DEFAULT_BRANCH)
}

/// What has to be asked before `judge` can judge, given the heads: commits other than the head that may be as good.
pub fn questions(deployed: &[Deployed<'_>], heads: &Heads, layout: &Layout) -> Vec<Comparison> {
    let mut questions: Vec<Comparison> = deployed
        .iter()
        .flat_map(|deployed| {
            let stage = StageRevisions::of(*deployed, heads, layout);
            stage.into_iter().flat_map(|stage| stage.comparisons())
        })
        .collect();
    questions.sort();
    questions.dedup();
    questions
}

/// How a stage is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It runs what its branch has, and well.
    Ready,
    /// It does not, for these reasons.
    NotReady(Vec<String>),
    /// The head of its branch is not known, for this reason, and nothing else speaks against it.
    Unknown(String),
}

/// Judges one stage.
pub fn judge(deployed: Deployed<'_>, heads: &Heads, layout: &Layout) -> Readiness {
    let (_, stage, observed) = deployed;
    let mut reasons = Vec::new();
    let status = &observed.status;
    for condition in &status.conditions {
        if condition.kind.ends_with("Error") {
            reasons.push(format!("{}: {}", condition.kind, condition.message));
        }
    }
    match status.compared {
        Compared::Never => reasons.push("it was never compared".to_owned()),
        Compared::WithOther => {
            reasons
                .push("it was last compared before its sources or destination changed".to_owned());
        }
        Compared::AsSet => {}
    }
    if observed.refresh_is_due {
        reasons.push("a refresh was asked for and has not been made".to_owned());
    }
    match (status.sync.as_str(), stage.auto_sync) {
        ("Synced", _) | ("", _) => {}
        (sync, false) => reasons.push(format!(
            "it is {sync}, and its entry says autoSync: false: somebody syncs it by hand"
        )),
        (sync, true) => reasons.push(format!("it is {sync}")),
    }
    match status.health.as_str() {
        "Healthy" => {}
        "" => reasons.push("its health was never judged".to_owned()),
        health => reasons.push(format!("its health is {health}")),
    }
    if status.sync_is_due {
        reasons.push("a sync was asked for and has not begun".to_owned());
    }
    if let Some(operation) = &status.operation {
        match operation.phase.as_str() {
            "Succeeded" => {}
            "Running" | "Terminating" => reasons.push("a sync is running".to_owned()),
            phase => reasons.push(format!(
                "its last sync ended as {phase}: {}",
                operation.message
            )),
        }
    }
    let unknown = match StageRevisions::of(deployed, heads, layout) {
        Ok(revisions) => {
            reasons.extend(revisions.objections(heads));
            None
        }
        Err(why) => Some(why),
    };
    match (reasons.is_empty(), unknown) {
        (false, _) => Readiness::NotReady(reasons),
        (true, Some(why)) => Readiness::Unknown(why),
        (true, None) => Readiness::Ready,
    }
}

/// The finding of a stage that is not ready.
pub fn finding((app, stage, observed): Deployed<'_>, reasons: &[String]) -> Finding {
    READINESS.finding(
        stage.place,
        format!(
            "apps.{}.stages.{}: {} is not ready: {}",
            app.name,
            stage.name,
            observed.application.full_name(),
            reasons.join("; ")
        ),
    )
}

/// The revisions of one stage's sources, beside what they should be.
struct StageRevisions<'a> {
    app: &'a App,
    branch: &'a str,
    head: &'a str,
    /// Each source's revision that was compared; nothing where none was.
    compared: Vec<(Wanted, Option<&'a String>)>,
    /// The deploy repository's revision of the last sync that succeeded.
    synced: Option<&'a String>,
    rendered_from: Vec<String>,
    applied_from: Vec<String>,
}

/// What revision a source should have.
enum Wanted {
    /// The head of the branch.
    Head,
    /// This version of a chart.
    Version(String),
}

impl<'a> StageRevisions<'a> {
    fn of(
        (app, stage, observed): Deployed<'a>,
        heads: &'a Heads,
        layout: &Layout,
    ) -> Result<StageRevisions<'a>, String> {
        let branch = branch(stage);
        let asked = (app.repo.to_string(), branch.to_owned());
        let head = match heads.heads.get(&asked) {
            Some(Ok(head)) => head,
            Some(Err(why)) => return Err(why.clone()),
            None => return Err(format!("{branch} of {} was not asked for", app.repo)),
        };
        let revisions = &observed.status.revisions;
        let compared = observed.sources.iter().enumerate().map(|(at, source)| {
            let wanted = match &source.chart {
                Some(_) => Wanted::Version(source.target_revision.clone().unwrap_or_default()),
                None => Wanted::Head,
            };
            (wanted, revisions.get(at))
        });
        let own = observed
            .sources
            .iter()
            .position(|source| source.chart.is_none());
        let operation = observed.status.operation.as_ref();
        let synced = operation
            .filter(|operation| operation.phase == "Succeeded")
            .and_then(|operation| operation.revisions.get(own?));
        let path = app.path.as_ref();
        let (rendered_from, applied_from) = match app.repo.repo_name() {
            Ok(repo) => (
                rendered_from(observed),
                vec![
                    layout.terraform_dir(&repo, path),
                    layout.config_dir(&repo, path, &stage.name),
                ],
            ),
            Err(_) => (Vec::new(), Vec::new()),
        };
        Ok(StageRevisions {
            app,
            branch,
            head,
            compared: compared.collect(),
            synced,
            rendered_from,
            applied_from,
        })
    }

    fn comparison(&self, commit: &str, folders: &[String]) -> Comparison {
        Comparison {
            repo: self.app.repo.to_string(),
            branch: self.branch.to_owned(),
            commit: commit.to_owned(),
            folders: folders.to_vec(),
        }
    }

    /// What is to be asked of the deploy repository.
    fn comparisons(&self) -> Vec<Comparison> {
        let mut comparisons = Vec::new();
        for (wanted, revision) in &self.compared {
            if let (Wanted::Head, Some(revision)) = (wanted, revision)
                && revision.as_str() != self.head
                && !self.rendered_from.is_empty()
            {
                comparisons.push(self.comparison(revision, &self.rendered_from));
            }
        }
        if let Some(synced) = self.synced
            && synced != self.head
        {
            comparisons.push(self.comparison(synced, &self.applied_from));
        }
        comparisons
    }

    fn objections(&self, heads: &Heads) -> Vec<String> {
        let short = |commit: &str| commit.get(..12).unwrap_or(commit).to_owned();
        let head = short(self.head);
        let same = |commit: &str, folders: &[String]| {
            heads.same.get(&self.comparison(commit, folders)) == Some(&true)
        };
        let mut objections = Vec::new();
        for (wanted, revision) in &self.compared {
            match (wanted, revision) {
                (_, None) => {
                    objections.push("it does not say which revision it was compared at".to_owned());
                }
                (Wanted::Version(version), Some(found)) if version != *found => {
                    objections.push(format!(
                        "its chart was compared at {found}, and {version} is set"
                    ));
                }
                (Wanted::Head, Some(found))
                    if found.as_str() != self.head && !same(found, &self.rendered_from) =>
                {
                    objections.push(format!(
                        "it was compared at {}, and {} is at {head}",
                        short(found),
                        self.branch
                    ));
                }
                _ => {}
            }
        }
        objections.dedup();
        if let Some(synced) = self.synced
            && objections.is_empty()
            && synced != self.head
            && !same(synced, &self.applied_from)
        {
            objections.push(format!(
                "its last sync was at {}, and its Terraform or configuration is another one at {head}: its hook has not applied that",
                short(synced)
            ));
        }
        objections
    }
}

/// The folders that an Application is rendered from, as its annotation says; none where it has none, since any commit may then
/// render otherwise. A path that begins with no slash is relative to the source's own.
fn rendered_from(observed: &Observed) -> Vec<String> {
    let paths = observed.generate_paths.as_deref().unwrap_or_default();
    let paths = paths
        .split(';')
        .map(str::trim)
        .filter(|path| !path.is_empty());
    let absolute: Option<Vec<String>> = paths
        .map(|path| {
            let path = path.strip_prefix('/')?.trim_end_matches('/');
            let plain = !path.contains(['*', '?', '[']) && path.split('/').all(|part| part != "..");
            plain.then(|| path.to_owned())
        })
        .collect();
    absolute.unwrap_or_default()
}

#[cfg(test)]
mod tests;
