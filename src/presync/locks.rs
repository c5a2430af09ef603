//! `presync locks` and `presync unlock`: who holds which state, and the release of a lock whose holder is gone.

use jiff::Timestamp;

use crate::git::Remote;
use crate::git::tree::PartialClone;
use crate::names::StateKey;
use crate::scratch::Scratch;
use crate::state_backend::lock::describe;
use crate::state_backend::lock::{self, GivenBack, LockError, LockId};
use crate::state_backend::locks::{self, Held, age};

use super::PresyncError;
use super::environment::Environment;
use super::log::Log;

/// Lists every locked state with its holder and the lock's age. A lock that cannot be read is a line as well.
pub async fn list(environment: &Environment, log: &mut Log) -> Result<(), PresyncError> {
    let (_scratch, mut clone) = clone(environment)?;
    let branches = lock::names(clone.remote()).await.map_err(LockError::Git)?;
    if branches.is_empty() {
        log.say("no state is locked");
    }
    let branches: Vec<_> = branches.into_iter().collect();
    let held = locks::read(&mut clone, &branches).await;
    for held in held.map_err(LockError::Git)? {
        match held {
            Held::Nameless { name } => log.say(format_args!(
                "{name}: locked, under a name that is no state's key"
            )),
            Held::By { key, lock } => {
                let age = age(lock.text("Created"), Timestamp::now());
                let age = age.map(|age| format!(", {age} ago")).unwrap_or_default();
                log.say(format_args!("{key}: locked {}{age}", describe(&lock)));
            }
            Held::Unreadable { key, source } => {
                let error = LockError::Unreadable {
                    key: key.clone(),
                    source,
                };
                log.say(format_args!("{key}: {}", crate::report::one_line(&error)));
            }
        }
    }
    Ok(())
}

/// Releases the lock of `key` that has exactly this ID.
pub async fn unlock(
    key: &StateKey,
    id: &LockId,
    environment: &Environment,
    log: &mut Log,
) -> Result<(), PresyncError> {
    let (_scratch, mut clone) = clone(environment)?;
    match lock::give_back(&mut clone, key, id, None).await? {
        GivenBack::Done => {
            log.say(format_args!("released the lock {id} of {key}"));
            Ok(())
        }
        GivenBack::NotLocked => Err(PresyncError::NotLocked { key: key.clone() }),
        GivenBack::Others(other) => Err(PresyncError::OtherLock {
            key: key.clone(),
            id: id.clone(),
            holder: describe(&other),
        }),
    }
}

fn clone(environment: &Environment) -> Result<(Scratch, PartialClone), PresyncError> {
    let scratch = Scratch::new()?;
    let remote = Remote::new(environment.state_url.clone(), environment.credentials()?);
    let clone =
        PartialClone::init(remote, scratch.path().join("state.git")).map_err(LockError::Git)?;
    Ok((scratch, clone))
}
