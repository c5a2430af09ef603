//! What Terraform asks of its state backend during one run, answered: the rules of the protocol, without its wire.
//!
//! A state is written only under its lock, by whoever holds it; it may only follow on the state that it has read, with the same
//! lineage and a higher serial. What HTTP cannot say (`force-unlock` sends no ID, `push -force` leaves no mark) is permitted beforehand.

mod locking;

use std::error::Error;

use tokio::sync::mpsc::UnboundedSender;

use crate::git::GitError;
use crate::git::trailers;
use crate::names::StateKey;

use super::lock::{self, GivenBack, Lock, LockError, LockId, Standing, Taken};
use super::provenance::Provenance;
use super::store::retire::Retired;
use super::store::{Store, StoreError};
use super::succession::{Position, may_follow};

/// What a run may do beyond the protocol.
#[derive(Clone, Debug, Default)]
pub struct Permits {
    /// The lock with this ID may be given back by a request that names none, and taken over by one that asks for the lock.
    pub unlock: Option<LockId>,
    /// A state may be replaced by one of another lineage, or of a lower serial.
    pub overwrite: bool,
}

/// Who takes the lock.
#[derive(Clone, Debug)]
enum Holder {
    /// Terraform, by LOCK and UNLOCK; what it holds now.
    Client(Option<Standing>),
    /// The run itself, for its whole life: Terraform gets no lock address.
    Run(Standing),
}

/// What is answered to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done.
    Done,
    /// The state.
    State(Vec<u8>),
    /// There is no state.
    NoState,
    /// This lock stands in the way.
    Locked(Lock),
    /// A write without a lock.
    NotLocked(String),
    /// The request itself is wrong.
    Bad(String),
    /// A rule forbids it; asking again changes nothing.
    Refused(String),
    /// It failed; asking again may help.
    Failed(String),
}

/// One run's state.
pub struct Session {
    store: Store,
    key: StateKey,
    holder: Holder,
    given_back: Option<LockId>,
    permits: Permits,
    provenance: Provenance,
    unsaved: Option<Unsaved>,
    saved_serial: Option<u64>,
    /// The state as last read or written, while the run holds the lock: nobody else may write it.
    seen: Option<Option<Vec<u8>>>,
    events: UnboundedSender<String>,
}

/// A state that Terraform handed over and that is not in its place.
struct Unsaved {
    state: Vec<u8>,
    /// Whether a rule keeps it from there, which does not change by trying again.
    refused: bool,
}

impl Session {
    /// A session in which Terraform takes the lock and gives it back. Whatever is worth a line in the log goes to `events`.
    pub fn new(
        store: Store,
        key: StateKey,
        permits: Permits,
        provenance: Provenance,
        events: UnboundedSender<String>,
    ) -> Session {
        Session {
            store,
            key,
            holder: Holder::Client(None),
            given_back: None,
            permits,
            provenance,
            unsaved: None,
            saved_serial: None,
            seen: None,
            events,
        }
    }

    /// Takes the lock for the run itself, until [`Session::release`].
    pub async fn hold(&mut self, lock: Lock) -> Result<Taken, LockError> {
        let lock = lock.with_info(&self.provenance.lock_info());
        let taken = self.take(&lock).await?;
        if let Taken::Ours(standing) = &taken {
            self.holder = Holder::Run(standing.clone());
        }
        Ok(taken)
    }

    /// Gives back whatever lock is still held: the run's own, or one that a killed Terraform left behind.
    pub async fn release(&mut self) -> Result<Option<GivenBack>, LockError> {
        let held = match &self.holder {
            Holder::Run(standing) | Holder::Client(Some(standing)) => standing.clone(),
            Holder::Client(None) => return Ok(None),
        };
        let given_back = self.give_back(held.lock.id(), Some(&held)).await?;
        self.holder = Holder::Client(None);
        Ok(Some(given_back))
    }

    /// The lock that is held now.
    pub fn held(&self) -> Option<&Lock> {
        match &self.holder {
            Holder::Run(standing) | Holder::Client(Some(standing)) => Some(&standing.lock),
            Holder::Client(None) => None,
        }
    }

    /// The last state that Terraform handed over and that could not be written.
    pub fn unsaved(&self) -> Option<&[u8]> {
        self.unsaved
            .as_ref()
            .map(|unsaved| unsaved.state.as_slice())
    }

    /// Whether there is such a state and trying again cannot help.
    pub fn unsaved_for_good(&self) -> bool {
        self.unsaved.as_ref().is_some_and(|unsaved| unsaved.refused)
    }

    /// The serial of the last state that was written.
    pub fn saved_serial(&self) -> Option<u64> {
        self.saved_serial
    }

    /// The store, for what is no request of Terraform's.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Tries once more to write what could not be written, if the lock still stands. Whether everything is written now.
    pub async fn save_unsaved(&mut self) -> bool {
        let Some(state) = self.unsaved().map(<[u8]>::to_vec) else {
            return true;
        };
        let id = self.held().map(|lock| lock.id().to_string());
        if let Err(answer) = self.may_write(id.as_deref()).await {
            self.keep_unsaved(&state, &answer);
            return false;
        }
        self.write(&state).await == Answer::Done
    }

    /// Whether the lock that is held is no longer in the repository; `false` where that cannot be found out.
    pub async fn lock_is_lost(&mut self) -> bool {
        let held = match &self.holder {
            Holder::Run(standing) | Holder::Client(Some(standing)) => standing.commit.clone(),
            Holder::Client(None) => return false,
        };
        let reference = lock::reference(&self.key);
        let now = self.store.locks().remote().reference(&reference).await;
        now.is_ok_and(|now| now != Some(held))
    }

    /// Takes a state from Terraform's own emergency file: it was never handed over. One that was cut short, as on a full
    /// disk, or that is older than what was handed over, takes no state's place.
    pub fn take_errored(&mut self, state: Vec<u8>) {
        let handed_over = self.unsaved().map(|state| Position::read(state).ok());
        let serial = Position::read(&state).map(|position| position.serial).ok();
        let better = match handed_over {
            None => !state.is_empty(),
            Some(handed_over) => {
                serial.is_some() && serial >= handed_over.map(|position| position.serial)
            }
        };
        if !better {
            return;
        }
        self.unsaved = Some(Unsaved {
            state,
            refused: false,
        });
    }

    /// Keeps what could not be written on a rescue branch, whose name is returned.
    pub async fn rescue(&mut self) -> Result<Option<String>, StoreError> {
        let Some(state) = self.unsaved().map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        let position = Position::read(&state).unwrap_or_default();
        let message = format!(
            "Rescue {}\n\nIt could not be written to its place.\n\n{}",
            self.key,
            self.provenance.trailers(&position)
        );
        let branch = self
            .store
            .rescue(&self.key, &state, position.serial, &message)
            .await?;
        self.unsaved = None;
        Ok(Some(branch))
    }

    /// GET.
    pub async fn get(&mut self) -> Answer {
        self.say(format!("Getting state from {}", self.key));
        match self.read().await {
            Ok(Some(state)) => Answer::State(state),
            Ok(None) => {
                self.say(format!(
                    "there is no state at {} in the state repository: a write makes one",
                    self.key
                ));
                Answer::NoState
            }
            Err(error) => self.store_failed(&error),
        }
    }

    /// The state. A run that holds the lock reads it once: Terraform asks again before every write, and must get to that
    /// write also when git is out of reach.
    pub async fn read(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(seen) = &self.seen {
            return Ok(seen.clone());
        }
        let stored = self.store.read(&self.key).await?;
        if let (Holder::Run(_), Some(stored)) = (&self.holder, &stored) {
            // Now, and not when there is a new state that has no place to go.
            self.store.may_replace(&self.key, stored)?;
        }
        let state = stored.map(|stored| stored.state);
        self.see(state.clone());
        Ok(state)
    }

    fn see(&mut self, state: Option<Vec<u8>>) {
        if let Holder::Run(_) = &self.holder {
            self.seen = Some(state);
        }
    }

    /// POST; the ID of the lock stands in the query.
    pub async fn post(&mut self, id: Option<&str>, body: &[u8]) -> Answer {
        self.say(format!("Saving state to {}", self.key));
        if let Err(answer) = self.may_write(id).await {
            self.keep_unsaved(body, &answer);
            return answer;
        }
        self.write(body).await
    }

    async fn write(&mut self, state: &[u8]) -> Answer {
        let position = match Position::read(state) {
            Ok(position) => position,
            Err(error) => {
                let answer = self.refused(format!("that is no state: {error}"));
                self.keep_unsaved(state, &answer);
                return answer;
            }
        };
        let key = self.key.clone();
        let overwrite = self.permits.overwrite;
        let message = format!("Update {key}\n\n{}", self.provenance.trailers(&position));
        let written = self
            .store
            .write(&key, state, &message, |stored| {
                if overwrite {
                    Ok(())
                } else {
                    may_follow(stored, &position, &key)
                }
            })
            .await;
        match written {
            Ok(written) => {
                self.unsaved = None;
                self.saved_serial = Some(position.serial);
                self.see(Some(state.to_vec()));
                for changed in written.changed {
                    self.say(format!(
                        "warning: sops cannot carry a number of {key}: {changed}"
                    ));
                }
                Answer::Done
            }
            Err(error) => {
                let answer = self.store_failed(&error);
                self.keep_unsaved(state, &answer);
                answer
            }
        }
    }

    fn keep_unsaved(&mut self, state: &[u8], answer: &Answer) {
        self.unsaved = Some(Unsaved {
            state: state.to_vec(),
            refused: !matches!(answer, Answer::Failed(_)),
        });
    }

    /// DELETE, which carries no ID: only a lock of this very run counts.
    pub async fn delete(&mut self) -> Answer {
        self.say(format!("Deleting state from {}", self.key));
        let id = self.held().map(|lock| lock.id().to_string());
        if let Err(answer) = self.may_write(id.as_deref()).await {
            return answer;
        }
        let key = self.key.clone();
        let position = match self.store.read(&key).await {
            Ok(None) => return Answer::Done,
            Ok(Some(stored)) => Position::read(&stored.state).unwrap_or_default(),
            Err(error) => return self.store_failed(&error),
        };
        let trailers = self.provenance.trailers(&position);
        match self
            .store
            .remove(&key, &format!("Delete {key}\n\n{trailers}"))
            .await
        {
            Ok(_) => {
                self.see(None);
                Answer::Done
            }
            Err(error) => self.store_failed(&error),
        }
    }

    /// What stands beside the state in its folder, and would keep it from being removed.
    pub async fn beside(&mut self) -> Result<Vec<String>, StoreError> {
        self.store.beside(&self.key).await
    }

    /// Removes the state as the end of a destroy, while the lock still is this run's: the commit has this first line, this text, and
    /// trailers for the run's provenance and these.
    pub async fn retire(
        &mut self,
        subject: &str,
        text: &str,
        more: &[(&str, Option<&str>)],
    ) -> Result<Retired, StoreError> {
        if let Err(answer) = self.may_write(None).await {
            let why = match answer {
                Answer::Locked(lock) => format!("it is held {}", lock::describe(&lock)),
                Answer::NotLocked(_) => "it was released".to_owned(),
                other => format!("{other:?}"),
            };
            return Err(StoreError::NotOurs {
                key: self.key.clone(),
                why,
            });
        }
        let state = self.seen.clone().flatten().unwrap_or_default();
        let position = Position::read(&state).unwrap_or_default();
        let of_run = self.provenance.trailers(&position);
        let of_caller = trailers::to_lines(more.iter().copied());
        let message = format!("{subject}\n\n{text}\n\n{of_run}{of_caller}");
        let key = self.key.clone();
        let retired = self.store.retire(&key, &message).await?;
        self.see(None);
        Ok(retired)
    }

    /// A write needs the lock: the run's own, or the one that the request names, and it must still stand.
    async fn may_write(&mut self, id: Option<&str>) -> Result<(), Answer> {
        let key = self.key.clone();
        let held = match (&self.holder, id) {
            (Holder::Run(standing), _) => Some(standing.clone()),
            (Holder::Client(Some(standing)), Some(id)) if standing.lock.id().to_string() == id => {
                Some(standing.clone())
            }
            _ => None,
        };
        let clone = self.store.locks();
        if let Some(held) = held {
            let reference = lock::reference(&key);
            let now = clone.remote().reference(&reference).await;
            if now.map_err(|error| self.failed(&error))? == Some(held.commit) {
                return Ok(());
            }
        }
        let clone = self.store.locks();
        match lock::read(clone, &key).await {
            Err(error) => Err(self.failed(&error)),
            Ok(Some(standing)) if id == Some(standing.lock.id().to_string().as_str()) => Ok(()),
            Ok(Some(standing)) => {
                self.say(format!(
                    "refused: {key} is locked by another: {}",
                    lock::describe(&standing.lock)
                ));
                Err(Answer::Locked(standing.lock))
            }
            Ok(None) => {
                let text = format!(
                    "{key} is not locked, and a state is written only under its lock: leave out -lock=false"
                );
                self.say(format!("refused: {text}"));
                Err(Answer::NotLocked(text))
            }
        }
    }

    fn say(&self, line: String) {
        // The receiver goes when the run ends; what nobody reads any more need not be said.
        if self.events.send(line).is_err() {
            tracing::debug!("nobody reads the state backend's lines");
        }
    }

    fn refused(&self, text: String) -> Answer {
        self.say(format!("refused: {text}"));
        Answer::Refused(text)
    }

    fn failed(&self, error: &dyn Error) -> Answer {
        let text = crate::report::one_line(error);
        self.say(text.clone());
        Answer::Failed(text)
    }

    fn store_failed(&self, error: &StoreError) -> Answer {
        let text = crate::report::one_line(error);
        match error {
            // Asking again makes no branch.
            StoreError::Git(GitError::NoBranch { .. }) => self.refused(text),
            StoreError::Git(_) | StoreError::Push(_) | StoreError::Contended { .. } => {
                self.failed(error)
            }
            StoreError::NotSealed { source, .. } if source.may_pass() => self.failed(error),
            _ => self.refused(text),
        }
    }
}
