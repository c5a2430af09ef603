//! The stage's state in the hands of one run: served to Terraform, under a lock that the run holds from its first look at
//! the state to its end, and brought to safety when it could not be written.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::names::{CommitSha, RepoUrl, StateKey};
use crate::state_backend::http::{Backend, Serves};
use crate::state_backend::lock::{GivenBack, Lock, LockId, Taken, describe};
use crate::state_backend::provenance::Provenance;
use crate::state_backend::session::{Permits, Session};
use crate::state_backend::store::Store;
use crate::state_backend::store::retire::Retired;
use crate::stop::Stop;
use crate::terraform::{ERRORED, TerraformError};

use super::PresyncError;
use super::log::Log;
use super::rescue;

/// The pause between two attempts to write a state.
const PAUSE: Duration = Duration::from_secs(5);

/// A state under our lock.
pub struct Held {
    session: Arc<Mutex<Session>>,
    lines: UnboundedReceiver<String>,
    key: StateKey,
    /// Where the states are, for people.
    states: RepoUrl,
}

impl Held {
    /// Takes the lock, or says who has it.
    pub async fn take(
        store: Store,
        key: StateKey,
        operation: &str,
        provenance: Provenance,
        log: &mut Log,
    ) -> Result<Held, PresyncError> {
        let who = store.author().email.clone();
        let states = store.url().clone();
        let created = jiff::Timestamp::now().to_string();
        let lock = Lock::new(new_id()?, operation, &who, &created);
        let (events, lines) = unbounded_channel();
        let mut session = Session::new(store, key.clone(), Permits::default(), provenance, events);
        log.state_backend(format_args!("Locking state in {key}"));
        match session.hold(lock).await? {
            Taken::Ours(_) => Ok(Held {
                session: Arc::new(Mutex::new(session)),
                lines,
                key,
                states,
            }),
            Taken::Others(other) => Err(PresyncError::Locked {
                key,
                id: other.id().clone(),
                holder: describe(&other),
            }),
        }
    }

    /// Where the state is kept.
    pub fn key(&self) -> &StateKey {
        &self.key
    }

    /// The state as it is.
    pub async fn read(&self) -> Result<Option<Vec<u8>>, PresyncError> {
        Ok(self.session.lock().await.read().await?)
    }

    /// The state repository's head as last read.
    pub async fn head(&self) -> Option<CommitSha> {
        self.session.lock().await.store_mut().known_head().cloned()
    }

    /// What stands beside the state in its folder, and would keep it from being removed.
    pub async fn beside(&self) -> Result<Vec<String>, PresyncError> {
        Ok(self.session.lock().await.beside().await?)
    }

    /// Removes the state, once its stage is destroyed, while the lock still is ours.
    pub async fn retire(
        &self,
        subject: &str,
        text: &str,
        trailers: &[(&str, Option<&str>)],
    ) -> Result<Retired, PresyncError> {
        let mut session = self.session.lock().await;
        Ok(session.retire(subject, text, trailers).await?)
    }

    /// Takes the state that Terraform wrote to its working folder because it could not hand it over.
    pub async fn take_errored(&self, folder: &Path) {
        if let Ok(state) = std::fs::read(folder.join(ERRORED)) {
            self.session.lock().await.take_errored(state);
        }
    }

    /// Serves the state to Terraform, without a lock address.
    pub async fn serve(&self) -> Result<Backend, PresyncError> {
        Ok(Backend::start(Serves::Session(Arc::clone(&self.session))).await?)
    }

    /// Writes what the backend had to say since the last time.
    pub fn say_lines(&mut self, log: &mut Log) {
        while let Ok(line) = self.lines.try_recv() {
            log.state_backend(line);
        }
    }

    /// Ends a run that came to `done`: the state is brought to its place or to safety, within `patience` unless the run was stopped.
    /// What it came to, and the serial of the last state that was written.
    pub async fn conclude<T>(
        self,
        done: Result<T, PresyncError>,
        patience: Duration,
        log: &mut Log,
        stop: &mut Stop,
    ) -> Result<(T, Option<u64>), PresyncError> {
        let stopped = matches!(
            done,
            Err(PresyncError::Stopped(_) | PresyncError::Terraform(TerraformError::Stopped { .. }))
        );
        // What is left of the time until a KILL is for bringing the state to safety.
        let patience = if stopped { Duration::ZERO } else { patience };
        match (done, self.end(patience, log, stop).await) {
            (Ok(done), Ok(serial)) => Ok((done, serial)),
            (Err(error), Ok(_)) => Err(error),
            (Ok(_), Err(ended)) => Err(ended),
            // Where the state is, is what counts then.
            (Err(error), Err(ended)) => {
                log.say(crate::report::one_line(&error));
                Err(ended)
            }
        }
    }

    /// The end of the run, whatever its result: a state that could not be written is tried again for as long as `patience`
    /// and until somebody wants us to stop, then brought to safety, and the lock is given back, unless the state did not get
    /// to its place. The serial of the last state that was written.
    async fn end(
        mut self,
        patience: Duration,
        log: &mut Log,
        stop: &mut Stop,
    ) -> Result<Option<u64>, PresyncError> {
        let session = Arc::clone(&self.session);
        let mut session = session.lock().await;
        let saved = save(&mut session, patience, stop).await;
        self.say_lines(log);
        if !saved {
            return Err(rescue::bring_to_safety(&mut session, &self.key, &self.states, log).await);
        }
        log.state_backend(format_args!("Unlocking state in {}", self.key));
        match session.release().await? {
            None | Some(GivenBack::Done | GivenBack::NotLocked) => Ok(session.saved_serial()),
            Some(GivenBack::Others(other)) => Err(PresyncError::LockLost {
                key: self.key.clone(),
                holder: describe(&other),
            }),
        }
    }
}

async fn save(session: &mut Session, patience: Duration, stop: &mut Stop) -> bool {
    let give_up = tokio::time::Instant::now() + patience;
    loop {
        if session.save_unsaved().await {
            return true;
        }
        if session.unsaved_for_good() || tokio::time::Instant::now() >= give_up {
            return false;
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            // A KILL follows, and the state is nowhere but here.
            _ = stop.next() => return session.save_unsaved().await,
        }
    }
}

/// A random ID in the form of a UUID, which is what Terraform's own locks have.
fn new_id() -> Result<LockId, PresyncError> {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| PresyncError::Random(error.into()))?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    let parts: Vec<&str> = parts
        .iter()
        .filter_map(|(from, to)| hex.get(*from..*to))
        .collect();
    parts
        .join("-")
        .parse()
        .map_err(|_| PresyncError::Random(std::io::Error::other("no lock ID came of it")))
}
