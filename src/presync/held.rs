//! The stage's state in the hands of one run: served to Terraform, under a lock that the run holds from its first look at
//! the state to its end, and brought to safety when it could not be written.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::names::StateKey;
use crate::state_backend::http::{Backend, Serves};
use crate::state_backend::lock::{GivenBack, Lock, LockId, Taken, describe};
use crate::state_backend::provenance::Provenance;
use crate::state_backend::session::{Permits, Session};
use crate::state_backend::store::Store;

use super::PresyncError;
use super::log::Log;

/// Terraform's emergency file
/// (<https://developer.hashicorp.com/terraform/language/state/backends#state-storage>).
const ERRORED: &str = "errored.tfstate";
/// The pause between two of these attempts.
const PAUSE: Duration = Duration::from_secs(5);
/// The characters of a line of a printed state.
const LINE: usize = 120;

/// A state under our lock.
pub struct Held {
    session: Arc<Mutex<Session>>,
    lines: UnboundedReceiver<String>,
    key: StateKey,
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

    /// The end of the run, whatever its result: a state that could not be written is tried again for as long as `patience`,
    /// then brought to safety, and the lock is given back, unless the state did not get to its place. The serial of the
    /// last state that was written.
    pub async fn end(
        mut self,
        patience: Duration,
        log: &mut Log,
    ) -> Result<Option<u64>, PresyncError> {
        let session = Arc::clone(&self.session);
        let mut session = session.lock().await;
        let saved = save(&mut session, patience).await;
        self.say_lines(log);
        if !saved {
            return Err(bring_to_safety(&mut session, &self.key, log).await);
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

async fn save(session: &mut Session, patience: Duration) -> bool {
    let give_up = tokio::time::Instant::now() + patience;
    loop {
        if session.save_unsaved().await {
            return true;
        }
        if session.unsaved_for_good() || tokio::time::Instant::now() >= give_up {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Puts the state on its rescue branch, else into the log. The lock stays: nobody may apply against the old state.
async fn bring_to_safety(session: &mut Session, key: &StateKey, log: &mut Log) -> PresyncError {
    let id = session
        .held()
        .map_or_else(String::new, |lock| lock.id().to_string());
    let sealed = session.store_mut().seals();
    let open = if sealed {
        " | sops decrypt --input-type json --output-type json /dev/stdin"
    } else {
        ""
    };
    let steps = format!(
        "presync unlock {key} --lock-id {id} && presync backend {key} -- terraform init && \
         presync backend {key} -- terraform state push rescued.tfstate"
    );
    match session.rescue().await {
        Ok(Some(branch)) => {
            log.say(format_args!(
                "the state could not be written to {key} and is kept on the branch {branch} of the state repository; {key} stays \
                 locked, so that nobody applies against the old one"
            ));
            log.say(format_args!(
                "to bring it back, in an empty folder: git init -q && git fetch STATE_REPOSITORY {branch} && git show FETCH_HEAD:{key}{open} \
                 >rescued.tfstate && {steps}"
            ));
            PresyncError::Rescued {
                key: key.clone(),
                branch,
            }
        }
        other => {
            if let Err(error) = &other {
                log.say(crate::report::one_line(error));
            }
            let state = session.unsaved().unwrap_or_default().to_vec();
            // What cannot be sealed now must not be lost either.
            let (document, sealed) = match session.store_mut().as_kept(key, &state).await {
                Ok(document) => (document, sealed),
                Err(error) => {
                    log.say(crate::report::one_line(&error));
                    (state, false)
                }
            };
            let how = if sealed { "encrypted" } else { "NOT encrypted" };
            let open = if sealed { open } else { "" };
            log.say(format_args!(
                "the state could not be written anywhere in the state repository; it follows, {how}, and {key} may still be locked"
            ));
            log.state(&packed(&document));
            log.say(format_args!(
                "to bring it back, in an empty folder: sed -n 's/^presync-state: //p' THIS_LOG | base64 -d | gunzip{open} \
                 >rescued.tfstate && {steps}"
            ));
            PresyncError::Printed { key: key.clone() }
        }
    }
}

/// gzip and base64, in lines.
fn packed(document: &[u8]) -> Vec<String> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail; if it did, the document itself is as good.
    let bytes = match packed.write_all(document).and_then(|()| packed.finish()) {
        Ok(bytes) => bytes,
        Err(_) => document.to_vec(),
    };
    let text = STANDARD.encode(bytes);
    (0..text.len())
        .step_by(LINE)
        .filter_map(|start| text.get(start..(start + LINE).min(text.len())))
        .map(str::to_owned)
        .collect()
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
