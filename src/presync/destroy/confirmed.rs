//! `presync destroy --confirmed`: what was previewed and confirmed, and nothing else, under the state's lock from the first look
//! to the last.

use std::collections::BTreeSet;

use crate::presync::PresyncError;
use crate::presync::apply;
use crate::presync::environment::Environment;
use crate::presync::held::Held;
use crate::presync::log::Log;
use crate::presync::prepare;
use crate::presync::provenance::provenance;
use crate::presync::source::ConfigFolder;
use crate::preview::Bound;
use crate::preview::agreement::{Agreement, agreement};
use crate::state_backend::store::around::Around;
use crate::state_backend::store::retire::Retired;
use crate::stop::Stop;
use crate::terraform::changes::Changes;
use crate::terraform::inventory::Inventory;
use crate::terraform::values::Values;
use crate::transport::record::{self, DestroyRecord};
use crate::transport::request::StageRequest;

use super::look::{self, Found, Ground, Look};

/// What was confirmed.
pub struct Confirmed {
    /// The digest of it.
    pub digest: String,
    /// All of it, where the job handed it over.
    pub bound: Option<Bound>,
}

/// Destroys what was confirmed, removes the state, and writes the log.
pub async fn destroy(
    request: &StageRequest,
    confirmed: &Confirmed,
    environment: &Environment,
    log: &mut Log,
    stop: &mut Stop,
) -> Result<(), PresyncError> {
    let recipients = environment.recipients()?;
    let read = async {
        let may_be_gone = ConfigFolder::MayBeGone;
        let prepared = prepare::prepare(request, may_be_gone, environment, recipients, log).await?;
        let (ground, mut store) = Ground::reduced(prepared, log)?;
        // Before anything is destroyed: what is left of the state must be kept, too.
        store.check_seal(&ground.key).await?;
        Ok::<_, PresyncError>((ground, store))
    };
    let (ground, store) = tokio::select! {
        read = read => read?,
        signal = stop.next() => return Err(PresyncError::Stopped(signal)),
    };
    let provenance = provenance(Some(request.revision.clone()));
    // Not given up half-way: a lock that was taken would stay.
    let mut held = Held::take(store, ground.key.clone(), "destroy", provenance, log).await?;
    let run = UnderLock {
        request,
        confirmed,
        environment,
        ground: &ground,
    };
    let done = run.destroy(&mut held, log, stop).await;
    let patience = environment.save_patience;
    let (record, _) = held.conclude(done, patience, log, stop).await?;
    let (lines, digest) = record::encode(&record)?;
    log.record(&lines, digest);
    log.say(
        match (record.destroyed + record.forgotten, &record.removed) {
            (0, None) => "nothing of what was confirmed was left to destroy",
            _ => "destroyed what was confirmed",
        },
    );
    Ok(())
}

/// What is done while the state is locked.
struct UnderLock<'a> {
    request: &'a StageRequest,
    confirmed: &'a Confirmed,
    environment: &'a Environment,
    ground: &'a Ground,
}

impl UnderLock<'_> {
    async fn destroy(
        &self,
        held: &mut Held,
        log: &mut Log,
        stop: &mut Stop,
    ) -> Result<DestroyRecord, PresyncError> {
        let Ground { key, .. } = self.ground;
        prepare::say_where(self.environment, key, log);
        let state = tokio::select! {
            state = held.read() => state?,
            signal = stop.next() => return Err(PresyncError::Stopped(signal)),
        };
        // What stands around it was shown by the preview, and binds nothing.
        let around = Around::default();
        let found = Found { state, around };
        let had_state = found.state.is_some();
        let before = held.head().await;
        let look = Look {
            request: self.request,
            environment: self.environment,
            ground: self.ground,
        };
        let now = look.at(found, log, stop).await?;
        let Confirmed { digest, bound } = self.confirmed;
        match agreement(digest, bound.as_ref(), &now.bound) {
            Ok(Agreement::Whole) => log.say(format_args!("what is there is what was confirmed, {digest}")),
            // In a wrong cluster the rest would look so, and the state would be emptied with nothing destroyed.
            Ok(Agreement::Rest) if !now.told.all_gone.is_empty() => {
                return Err(PresyncError::Moved {
                    differences: format!(
                        "of {} the provider finds nothing of what is left",
                        now.told.all_gone.join(", ")
                    ),
                });
            }
            Ok(Agreement::Rest) => log.say(format_args!(
                "what is there is the rest of what was confirmed, {digest}: an earlier run took the other part"
            )),
            Err(differences) => {
                return Err(PresyncError::Moved {
                    differences: differences.join("; "),
                });
            }
        }
        let mut taken = Taken::default();
        if had_state {
            nothing_beside(held).await?;
            taken = self.take(&now.bound, held, log, stop).await?;
        }
        let removed = if had_state {
            self.retire(before.as_ref().map(ToString::to_string), held, log)
                .await?
        } else {
            None
        };
        Ok(DestroyRecord {
            version: 1,
            revision: self.request.revision.clone(),
            key: key.clone(),
            digest: digest.clone(),
            destroyed: taken.destroyed,
            forgotten: taken.forgotten,
            removed,
            values: if had_state {
                now.values
            } else {
                Values::default()
            },
        })
    }

    /// Forgets, plans, and applies that plan, until the state lists nothing.
    async fn take(
        &self,
        now: &Bound,
        held: &mut Held,
        log: &mut Log,
        stop: &mut Stop,
    ) -> Result<Taken, PresyncError> {
        let Ground {
            scratch,
            terraform,
            source,
            root,
            key,
            cluster,
            ..
        } = self.ground;
        let backend = held.serve().await?;
        log.mask(vec![backend.password().to_owned()]);
        let variables = [backend.variables(), cluster.clone()].concat();
        let namespace = self.environment.namespace.as_ref();
        let workdir = prepare::workdir_of(source, &self.request.stage, namespace, variables);
        let has_plan = !now.changes.is_empty() || !now.gone.is_empty();
        if !has_plan && !now.forgotten.is_empty() {
            // Nothing was planned on the copy, so nothing is made ready yet.
            let variables = [backend.variables(), cluster.clone()].concat();
            let stage = &self.request.stage;
            prepare::workdir(source, root, stage, namespace, variables, log)?;
            prepare::init(terraform, &workdir, root, log, stop).await?;
        }
        let addresses: Vec<&str> = now.forgotten.iter().map(|f| f.address.as_str()).collect();
        if !addresses.is_empty() {
            log.say(format_args!(
                "forgetting {} namespaced Kubernetes object(s), which are not destroyed",
                addresses.len()
            ));
            look::forget_in(terraform, &workdir, &addresses, stop).await?;
            held.say_lines(log);
        }
        if has_plan {
            let file = scratch.path().join("destroy");
            log.say(format_args!(
                "planning against {key}: what is planned is then applied"
            ));
            let tfvars = &source.tfvars;
            let changes =
                prepare::plan_to_file(terraform, &workdir, tfvars, &file, log, stop).await?;
            held.say_lines(log);
            same_plan(now, &changes)?;
            let applied = apply::apply(terraform, &workdir, &file, log, stop).await;
            held.say_lines(log);
            held.take_errored(&workdir.folder).await;
            applied?;
        }
        self.nothing_left(held, log).await?;
        Ok(Taken {
            destroyed: now.destroyed(),
            forgotten: now.forgotten.len(),
        })
    }

    async fn nothing_left(&self, held: &Held, log: &mut Log) -> Result<(), PresyncError> {
        let key = &self.ground.key;
        let state = held.read().await?.unwrap_or_default();
        let left = Inventory::read(&state).map_err(|source| PresyncError::State {
            key: key.to_string(),
            source,
        })?;
        let left: Vec<&str> = left
            .instances()
            .iter()
            .map(|i| i.address.as_str())
            .collect();
        if !left.is_empty() {
            return Err(PresyncError::StillLists {
                addresses: left.join(", "),
            });
        }
        log.say("the state lists no resources");
        Ok(())
    }

    /// Removes the state's file; the commit that did.
    async fn retire(
        &self,
        before: Option<String>,
        held: &mut Held,
        log: &mut Log,
    ) -> Result<Option<String>, PresyncError> {
        let StageRequest { stage, path, .. } = self.request;
        let key = &self.ground.key;
        let repo = self
            .request
            .url
            .repo_name()
            .map_err(PresyncError::RepoName)?;
        let app = match path {
            Some(path) => format!("{repo}/{path}"),
            None => repo.to_string(),
        };
        let folder = key.folder();
        let author = &self.environment.author.email;
        let subject = format!("Remove {folder}/: {stage} of {app} destroyed by {author}");
        let text = match before {
            Some(before) => {
                format!(
                    "As it was before the destroy, the file comes back by:\n  git checkout {before} -- {key}"
                )
            }
            None => String::new(),
        };
        let trailers = [
            ("Digest", Some(self.confirmed.digest.as_str())),
            ("Requested-By", self.environment.requested_by.as_deref()),
            ("Approved-By", self.environment.approved_by.as_deref()),
        ];
        let retired = held.retire(&subject, &text, &trailers).await?;
        held.say_lines(log);
        match retired {
            Retired::Removed(commit) => {
                log.say(format_args!("removed {folder}/ from the state repository"));
                Ok(Some(commit.to_string()))
            }
            Retired::Nothing => {
                log.say(format_args!(
                    "the state repository has no {folder}/: nothing to remove"
                ));
                Ok(None)
            }
        }
    }
}

/// Refuses to begin what could not be ended: a state with something beside it is not removed.
async fn nothing_beside(held: &Held) -> Result<(), PresyncError> {
    let beside = held.beside().await?;
    if beside.is_empty() {
        return Ok(());
    }
    Err(PresyncError::Moved {
        differences: format!(
            "{}/ in the state repository holds more than the state by now: {}",
            held.key().folder(),
            beside.join(", ")
        ),
    })
}

/// What a run took.
#[derive(Default)]
struct Taken {
    destroyed: usize,
    forgotten: usize,
}

/// Refuses to apply a plan that is not the one that was looked at just before, on the copy.
fn same_plan(now: &Bound, changes: &Changes) -> Result<(), PresyncError> {
    let looked: BTreeSet<String> = now.changes.iter().map(ToString::to_string).collect();
    let planned: BTreeSet<String> = changes.resources.iter().map(ToString::to_string).collect();
    let gone: BTreeSet<&str> = changes
        .gone
        .iter()
        .map(|gone| gone.address.as_str())
        .collect();
    let more: Vec<&String> = planned.difference(&looked).collect();
    // What went by itself in between need not be destroyed.
    let is_gone = |line: &&String| {
        let change = now
            .changes
            .iter()
            .find(|change| change.to_string() == **line);
        change.is_some_and(|change| gone.contains(change.address.as_str()))
    };
    let less: Vec<&String> = looked
        .difference(&planned)
        .filter(|line| !is_gone(line))
        .collect();
    if more.is_empty() && less.is_empty() {
        return Ok(());
    }
    let differences = more
        .iter()
        .map(|line| format!("{line}, which was not confirmed"));
    let differences = differences.chain(less.iter().map(|line| format!("no longer {line}")));
    Err(PresyncError::Moved {
        differences: differences.collect::<Vec<_>>().join("; "),
    })
}
