//! The step `destroy`: what a record confirms is destroyed at the previewed commit, if nothing has moved since.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::job::{Confirmed, Launch, Verb};
use crate::estate::state_url;
use crate::names::BranchName;
use crate::preview::objections::{lifted, objections};
use crate::report::{self, Failure, Outcome, Shown};
use crate::runner::{Asked, Bound, Runner};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::transport::record::{self, DestroyRecord};
use crate::transport::request::{APPROVED_BY, CONFIRMED, NAMESPACE, REQUESTED_BY, StageRequest};

use super::check::{Checked, check};
use super::preview::read;
use super::record::Record;
use super::remove_config::{author, folder_of};
use super::result::{Progress, Reviewed};
use super::{DestroyError, Wanted};

/// How long one piece of the confirmed record is, in bytes: a string of a process's environment ends at 128 KiB.
const PIECE: usize = 100 * 1024;

/// Destroys what the record confirms. The outcome of presync's run; what it did stands in the record then.
pub(super) async fn destroy(
    record: &mut Record,
    wanted: &Wanted,
    settings: &Settings,
    stop: &mut Stop,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    if record
        .fits_done(&wanted.target, jiff::Timestamp::now())
        .is_ok()
        && let Some(done) = &record.done
    {
        report::note(format_args!(
            "{} was destroyed by this record at {}: nothing to destroy",
            record.target, done.at
        ));
        progress.destroyed = Some(done.record.clone());
        progress.was_destroyed = true;
        return Ok(Outcome::Done);
    }
    let shown = Shown::open(None).map_err(DestroyError::from)?;
    let branch = BranchName::main();
    let gathered = async {
        record.fits(&wanted.target, jiff::Timestamp::now())?;
        // Before anything is destroyed: what ends it must be possible.
        author()?;
        if let Some(file) = &wanted.record {
            record.write(file)?;
        }
        let runner = Runner::open(settings).await?;
        let checked = check(wanted, settings, progress).await?;
        not_moved(record, &checked, &branch, settings).await?;
        checked
            .forge
            .may_write(&wanted.target.repo, &branch)
            .await?;
        Ok::<_, DestroyError>((runner, checked))
    };
    let (runner, checked) = tokio::select! {
        gathered = gathered => gathered?,
        signal = stop.next() => return Ok(Outcome::of_stop(signal)),
    };
    if progress.reviewed.is_none() {
        let preview = &record.preview;
        let objections = objections(preview, &record.namespaces);
        progress.reviewed = Some(Reviewed {
            reading: read(preview, &checked, &runner, &record.namespaces, settings),
            preview: preview.clone(),
            lifted: lifted(&objections, &record.allowed),
        });
    }
    let target = &wanted.target;
    let request = StageRequest {
        url: checked.forge.fetch_url(&target.repo),
        revision: record.preview.revision.clone(),
        stage: target.stage.clone(),
        path: target.path.clone(),
    };
    report::heading("revision", format_args!("{} (previewed)", request.revision));
    let mut environment = runner.environment(settings, state_url(&checked.forge, settings));
    environment.extend(confirmed(record, wanted)?);
    let asked = Asked {
        verb: Verb::Destroy,
        name: Launch::destroy_name(wanted.build, target),
        target,
        request: &request,
        arguments: request.destroy_arguments(&record.digest),
        environment,
        build: wanted.build_url.as_deref(),
        bound: Bound::None,
        confirmed: Some(Confirmed {
            digest: record.digest.clone(),
            image: record.image.clone(),
        }),
    };
    runner.say(&asked.name);
    progress.launched = true;
    let ran = runner.run::<DestroyRecord>(&asked, shown, stop).await;
    let ran = ran.map_err(DestroyError::from)?;
    let outcome = ran.outcome();
    progress.last_line.clone_from(&ran.last_line);
    progress.complete = Some(ran.complete);
    if outcome == Outcome::Done {
        let mut done = ran.record.ok_or(DestroyError::NoRecord)?;
        let values = std::mem::take(&mut done.values);
        if let Some(reviewed) = &mut progress.reviewed
            && reviewed.preview.values.is_empty()
        {
            reviewed.preview.values = values;
        }
        progress.destroyed = Some(done.clone());
        record.is_done(done, jiff::Timestamp::now());
    }
    Ok(outcome)
}

/// Refuses when what the preview was made from is no longer what the branch has.
async fn not_moved(
    record: &Record,
    checked: &Checked,
    branch: &BranchName,
    settings: &Settings,
) -> Result<(), DestroyError> {
    let bound = &record.preview.bound;
    let head = checked.forge.head(&bound.repo, branch).await?;
    let mut moved = Vec::new();
    // The config folder is one of them also where there was none.
    let mut folders: BTreeSet<String> = bound.trees.keys().cloned().collect();
    folders.insert(folder_of(record, settings));
    for folder in folders {
        let now = checked.forge.tree_of(&bound.repo, &head, &folder).await?;
        if now.as_ref() != bound.trees.get(&folder) {
            moved.push(folder);
        }
    }
    if moved.is_empty() {
        return Ok(());
    }
    Err(DestroyError::Moved { folders: moved })
}

/// What presync gets of the record, in its environment.
fn confirmed(
    record: &Record,
    wanted: &Wanted,
) -> Result<BTreeMap<&'static str, String>, DestroyError> {
    let mut environment = BTreeMap::new();
    let bound = &record.preview.bound;
    if let Some(namespace) = &bound.namespace {
        environment.insert(NAMESPACE, namespace.to_string());
    }
    environment.insert(REQUESTED_BY, record.requested_by.clone());
    if let Some(who) = &wanted.approved_by {
        environment.insert(APPROVED_BY, who.clone());
    }
    let packed = record::pack(bound).map_err(DestroyError::Pack)?;
    let pieces = packed
        .as_bytes()
        .chunks(PIECE)
        .map(|piece| String::from_utf8_lossy(piece).into_owned());
    let pieces: Vec<String> = pieces.collect();
    if pieces.len() > CONFIRMED.len() {
        return Err(DestroyError::TooLarge);
    }
    environment.extend(CONFIRMED.into_iter().zip(pieces));
    Ok(environment)
}
