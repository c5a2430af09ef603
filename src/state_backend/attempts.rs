//! How often a write is tried, and how long it waits in between.

use std::time::Duration;

use crate::git::GitError;
use crate::names::StateKey;

use super::store::StoreError;

/// How often a write is made again because the branch had moved. Each time somebody else's write has gone through.
pub(super) const RACES: u32 = 40;
/// How often it is tried again after a failure whose result is unknown.
pub(super) const FAILURES: u32 = 3;

/// How one attempt at a write ended.
pub(super) enum Round {
    /// It is there.
    Done,
    /// The branch was no longer as it was read.
    Moved,
}

/// How often a write may still be tried.
#[derive(Default)]
pub(super) struct Attempts {
    races: u32,
    failures: u32,
    /// Whether the branch must be read again.
    pub(super) fresh: bool,
}

impl Attempts {
    /// Waits before the next attempt, or ends with the error of this one.
    pub(super) async fn after(
        &mut self,
        round: Result<Round, StoreError>,
        key: &StateKey,
    ) -> Result<(), StoreError> {
        self.fresh = true;
        match round {
            Ok(_) => {
                self.races += 1;
                if self.races > RACES {
                    return Err(StoreError::Contended { key: key.clone() });
                }
                // Several writers that lost to the same one must not meet again all at once.
                let most = 20 * u64::from(self.races.min(10));
                tokio::time::sleep(Duration::from_millis(random_below(most))).await;
            }
            Err(
                error @ (StoreError::Git(GitError::Failed { .. } | GitError::Child { .. })
                | StoreError::Push(_)),
            ) => {
                self.failures += 1;
                if self.failures > FAILURES {
                    return Err(error);
                }
                tracing::debug!(%error, "the write is tried again");
                tokio::time::sleep(Duration::from_millis(250 << self.failures)).await;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn random_below(most: u64) -> u64 {
    let mut bytes = [0_u8; 8];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(_) => u64::from_le_bytes(bytes) % most.max(1),
        Err(_) => most,
    }
}
