//! `presync locks` and `presync unlock`: who holds which state, and the release of a lock whose holder is gone.

use jiff::Timestamp;

use crate::git::Remote;
use crate::git::tree::PartialClone;
use crate::names::StateKey;
use crate::scratch::Scratch;
use crate::state_backend::lock::describe;
use crate::state_backend::lock::{self, GivenBack, LockError, LockId};

use super::PresyncError;
use super::environment::Environment;
use super::log::Log;

/// Lists every locked state with its holder and the lock's age. A lock that cannot be read is a line as well.
pub async fn list(environment: &Environment, log: &mut Log) -> Result<(), PresyncError> {
    let (_scratch, mut clone) = clone(environment)?;
    let names = lock::names(clone.remote()).await.map_err(LockError::Git)?;
    if names.is_empty() {
        log.say("no state is locked");
    }
    for name in names.keys() {
        let Ok(key) = name.parse::<StateKey>() else {
            log.say(format_args!(
                "{name}: locked, under a name that is no state's key"
            ));
            continue;
        };
        match lock::read(&mut clone, &key).await {
            Ok(Some(standing)) => {
                let age = age(standing.lock.text("Created"), Timestamp::now());
                let age = age.map(|age| format!(", {age} ago")).unwrap_or_default();
                log.say(format_args!(
                    "{key}: locked {}{age}",
                    describe(&standing.lock)
                ));
            }
            // Given back since the names were read.
            Ok(None) => {}
            Err(error) => log.say(format_args!("{key}: {}", crate::report::one_line(&error))),
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

/// How long ago `created` was, in its two largest units; nothing when it is no time, or still to come.
fn age(created: &str, now: Timestamp) -> Option<String> {
    let created: Timestamp = created.parse().ok()?;
    let seconds = now.duration_since(created).as_secs();
    if seconds < 0 {
        return None;
    }
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (length, name) in units {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            parts.push(format!("{count} {name}"));
        }
    }
    parts.truncate(2);
    if parts.is_empty() {
        parts.push("0 s".to_owned());
    }
    Some(parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_its_two_largest_units() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        for (created, expected) in [
            ("2026-01-02T03:04:05Z", Some("0 s")),
            ("2026-01-02T03:03:00.5Z", Some("1 min 4 s")),
            ("2025-12-30T01:04:05Z", Some("3 d 2 h")),
            ("2026-01-02T03:04:06Z", None),
            ("yesterday", None),
        ] {
            assert_eq!(age(created, now).as_deref(), expected, "{created}");
        }
    }
}
