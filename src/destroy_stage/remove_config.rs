//! The step `remove-config`: the commit that takes the stage's folder out of the deploy repository, once its destroy has completed.

use crate::forge::{FolderToGo, Removal};
use crate::git::trailers;
use crate::git::write::Author;
use crate::names::BranchName;
use crate::presync::provenance;
use crate::report::{self, Failure, Outcome};
use crate::settings::Settings;
use crate::stop::Stop;

use super::check::{Checked, check};
use super::record::Record;
use super::result::Progress;
use super::{DestroyError, Wanted};

/// How often it is judged and tried again, when somebody else has written to the branch meanwhile.
const RACES: u32 = 10;

/// Removes the stage's config folder as the record has it.
pub(super) async fn remove_config(
    record: &Record,
    wanted: &Wanted,
    settings: &Settings,
    stop: &mut Stop,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    let fits = record.fits_done(&wanted.target, jiff::Timestamp::now());
    fits.map_err(DestroyError::from)?;
    let branch = BranchName::main();
    let removal = async {
        for races in 0..RACES {
            let checked = check(wanted, settings, progress).await?;
            let folder = folder_of(record, settings);
            let removed = attempt(record, wanted, &folder, &checked, &branch).await?;
            if removed != Removal::Moved {
                return Ok((removed, checked));
            }
            checked.forge.after_lost_race(races).await;
        }
        Err(DestroyError::Contended)
    };
    let (removed, checked) = tokio::select! {
        removal = removal => removal?,
        signal = stop.next() => return Ok(Outcome::of_stop(signal)),
    };
    let repo = &checked.repo;
    let folder = &folder_of(record, settings);
    match removed {
        Removal::Done(commit) => {
            report::note(format_args!("{repo} {commit} removes {folder}/"));
            progress.config_commit = Some(commit);
        }
        Removal::Nothing | Removal::Moved => report::note(format_args!(
            "{repo} has no {folder}/ on {branch}: nothing to remove"
        )),
        Removal::Changed => {
            return Err(DestroyError::Moved {
                folders: vec![folder.clone()],
            }
            .into());
        }
    }
    progress.config_removed = true;
    Ok(Outcome::Done)
}

async fn attempt(
    record: &Record,
    wanted: &Wanted,
    folder: &str,
    checked: &Checked,
    branch: &BranchName,
) -> Result<Removal, DestroyError> {
    let preview = &record.preview;
    let Some(tree) = preview.bound.trees.get(folder) else {
        let repo = &preview.bound.repo;
        let head = checked.forge.head(repo, branch).await?;
        let now = checked.forge.tree_of(repo, &head, folder).await?;
        return Ok(now.map_or(Removal::Nothing, |_| Removal::Changed));
    };
    let author = author()?;
    let message = message(record, wanted, folder);
    let folder = FolderToGo {
        repo: &preview.bound.repo,
        branch,
        folder,
        tree,
    };
    Ok(checked
        .forge
        .remove_folder(folder, &message, &author)
        .await?)
}

/// The stage's config folder, by the settings.
pub(super) fn folder_of(record: &Record, settings: &Settings) -> String {
    let bound = &record.preview.bound;
    let path = bound.path.as_ref();
    settings.layout.config_dir(&bound.repo, path, &bound.stage)
}

fn message(record: &Record, wanted: &Wanted, folder: &str) -> String {
    let preview = &record.preview;
    let through = wanted.through();
    let by = through.as_ref().unwrap_or(&record.requested_by);
    let stage = &preview.bound.stage;
    let revision = &preview.revision;
    let removed = record
        .done
        .as_ref()
        .and_then(|done| done.record.removed.as_deref());
    let trailers = trailers::to_lines([
        ("Digest", Some(record.digest.as_str())),
        ("State-Commit", removed),
        ("Build", through.as_deref()),
        ("Requested-By", Some(record.requested_by.as_str())),
        ("Approved-By", wanted.approved_by.as_deref()),
    ]);
    format!(
        "Remove {folder}/: {stage} destroyed by {by}\n\nAs it was before, it comes back by:\n  git checkout {revision} -- {folder}\n\n{trailers}"
    )
}

/// Who the commit is by.
pub(super) fn author() -> Result<Author, DestroyError> {
    provenance::commit_author().map_err(DestroyError::Author)
}
