//! `presync backend`: any Terraform command in the current folder, against one state of the state repository.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::sync::mpsc::unbounded_channel;

use crate::git::Remote;
use crate::names::StateKey;
use crate::scratch::Scratch;
use crate::state_backend::http::{Backend, Serves};
use crate::state_backend::session::{Permits, Session};
use crate::state_backend::store::Store;
use crate::stop::Stop;
use crate::terraform::root::{Root, RootError};
use crate::terraform::{GRACE, Terraform, Workdir};

use super::PresyncError;
use super::environment::Environment;
use super::log::Log;
use super::prepare;
use super::provenance::provenance;

/// What compares a state with its configuration: without one, everything is to be destroyed.
const FOR_A_ROOT: &[&str] = &["plan", "apply", "refresh", "destroy", "import", "test"];

/// Runs `command` and returns its exit code. Terraform takes the lock itself, where the command needs one. Terraform's
/// own output goes where the caller's goes; what the state backend has to say follows it in `log`.
pub async fn run(
    key: StateKey,
    permits: Permits,
    command: &[OsString],
    environment: &Environment,
    log: &mut Log,
    stop: &mut Stop,
) -> Result<u8, PresyncError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(PresyncError::Command(String::new()));
    };
    let verb = arguments.first().map(|verb| verb.to_string_lossy());
    if verb
        .as_deref()
        .is_none_or(|verb| verb.starts_with("-chdir"))
    {
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        return Err(PresyncError::Command(words.join(" ")));
    }
    let initialises = verb.as_deref() == Some("init");
    let terraform = Terraform::find(Some(Path::new(program))).await?;
    let recipients = environment.recipients()?;
    let folder = std::env::current_dir().map_err(PresyncError::Clone)?;
    let root = match Root::open(&folder, ".", key.as_str(), terraform.flavour()) {
        // A state can be listed, pulled or pushed without its root.
        Err(RootError::Empty { .. }) => {
            let verb = verb.unwrap_or_default();
            if FOR_A_ROOT.contains(&verb.as_ref()) {
                return Err(PresyncError::NoConfiguration {
                    verb: verb.into_owned(),
                });
            }
            Root::without_files(&folder, terraform.flavour())
        }
        other => other?,
    };
    if !initialises && folder.join(".terraform/terraform.tfstate").exists() {
        prepare::backend_in_force(&folder)?;
    }
    let scratch = Scratch::new()?;
    let remote = Remote::new(environment.state_url.clone(), environment.credentials()?);
    let store = Store::open(
        &remote,
        &environment.state_branch,
        &scratch.path().join("state.git"),
        environment.author.clone(),
        recipients,
    )?;
    let (events, mut lines) = unbounded_channel();
    let session = Session::new(store, key, permits, provenance(None), events);
    let session = Arc::new(Mutex::new(session));
    let backend = Backend::start(Serves::Session(Arc::clone(&session))).await?;
    let workdir = Workdir {
        folder: folder.clone(),
        variables: backend.locking_variables(),
    };
    let override_file = root.override_file()?;
    let ended = terraform
        .run_attached(&workdir, arguments, GRACE, stop)
        .await;
    drop(override_file);
    // One that Terraform was killed with; otherwise it has given its lock back itself.
    let released = session.lock().await.release().await;
    while let Ok(line) = lines.try_recv() {
        log.state_backend(line);
    }
    let code = ended?;
    released?;
    if initialises && code == 0 {
        prepare::backend_in_force(&folder)?;
    }
    Ok(code)
}
