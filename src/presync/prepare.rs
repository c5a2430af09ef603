//! What `plan` and `apply` have in common: the sources at the commit, the state's place, Terraform made ready on the
//! stage's state, and a plan in a file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cluster::{NotInPod, PodAccount};
use crate::git::Remote;
use crate::names::{Namespace, StageName, StateKey};
use crate::scratch::Scratch;
use crate::state_backend::recipients::Recipients;
use crate::state_backend::store::Store;
use crate::stop::Stop;
use crate::terraform::changes::Changes;
use crate::terraform::root::Root;
use crate::terraform::state::{StateError, StateHead};
use crate::terraform::values::{Masking, PlanValues, Values};
use crate::terraform::{ERRORED, Terraform, Workdir, lock_plugin_cache};
use crate::transport::request::{DEADLINE, StageRequest};

use super::PresyncError;
use super::environment::Environment;
use super::kubeconfig;
use super::log::Log;
use super::source::{self, ConfigFolder, Source, Wanted};

/// How long a stopped init or plan may take to end. Unlike an apply it has no state to save and no lock to give back, and
/// a refresh may wait for an unreachable service for ever.
const GRACE: Duration = Duration::from_secs(10);

/// Everything that is read before the state is.
pub struct Prepared {
    /// The run's private folder.
    pub scratch: Scratch,
    /// The program.
    pub terraform: Terraform,
    /// The sources on disk.
    pub source: Source,
    /// The root module.
    pub root: Root,
    /// Where the state is kept.
    pub key: StateKey,
    /// The states; nothing of them has been read.
    pub store: Store,
    /// The pod's account in its cluster.
    pub account: Result<PodAccount, NotInPod>,
    /// What Terraform's providers get of that account.
    pub cluster: Vec<(String, OsString)>,
}

/// Finds Terraform, fetches the sources and looks at the root.
pub async fn prepare(
    request: &StageRequest,
    config: ConfigFolder,
    environment: &Environment,
    recipients: Option<Recipients>,
    log: &mut Log,
) -> Result<Prepared, PresyncError> {
    let terraform = Terraform::find(environment.terraform.as_deref()).await?;
    log.say(format_args!(
        "{} at {}",
        name_of(&terraform),
        terraform.program().display()
    ));
    let scratch = Scratch::new()?;
    let credentials = environment.credentials()?;
    let repo = request.url.repo_name().map_err(PresyncError::RepoName)?;
    let layout = &environment.layout;
    let path = request.path.as_ref();
    let prefix = &environment.state_prefix;
    let key = layout.state_key(prefix, &repo, path, &request.stage)?;

    let deploy = Remote::new(request.url.clone(), credentials.clone());
    let wanted = Wanted {
        repo: &repo,
        path,
        stage: &request.stage,
        config,
    };
    let source = source::fetch(
        &deploy,
        &request.revision,
        wanted,
        layout,
        &scratch.path().join("deploy.git"),
        &scratch.path().join("clone"),
    )
    .await?;
    for left_out in &source.left_out {
        log.say(left_out);
    }
    let root = Root::open(
        &source.root.join(&source.terraform),
        &source.terraform,
        key.as_str(),
        terraform.flavour(),
    )?;
    let states = Remote::new(environment.state_url.clone(), credentials);
    let store = Store::open(
        &states,
        &environment.state_branch,
        &scratch.path().join("state.git"),
        environment.author.clone(),
        recipients,
    )?;
    let account = PodAccount::find();
    let cluster = kubeconfig::write(&account, scratch.path())?;
    Ok(Prepared {
        scratch,
        terraform,
        source,
        root,
        key,
        store,
        account,
        cluster,
    })
}

/// Says from where the state is read.
pub fn say_where(environment: &Environment, key: &StateKey, log: &mut Log) {
    log.state_backend(format_args!(
        "Getting state from {}//{key}",
        environment.state_url
    ));
}

/// The head of the stage's state, unless this Terraform must not work on it.
pub fn head_of(
    state: Option<&[u8]>,
    key: &StateKey,
    terraform: &Terraform,
    log: &mut Log,
) -> Result<Option<StateHead>, PresyncError> {
    let Some(state) = state else {
        log.say(format_args!(
            "the backend holds no state at {key}: everything is planned anew"
        ));
        return Ok(None);
    };
    read_head(state, key, terraform).map(Some)
}

/// The head of a state, unless this Terraform must not work on it.
pub fn read_head(
    state: &[u8],
    key: &StateKey,
    terraform: &Terraform,
) -> Result<StateHead, PresyncError> {
    let unusable = |source: StateError| PresyncError::State {
        key: key.to_string(),
        source,
    };
    let head = StateHead::read(state).map_err(unusable)?;
    head.not_newer_than(terraform.version(), &name_of(terraform))
        .map_err(unusable)?;
    Ok(head)
}

/// The root's folder with the file that points Terraform to our backend, which `variables` lead to.
pub fn workdir(
    source: &Source,
    root: &Root,
    stage: &StageName,
    namespace: Option<&Namespace>,
    variables: Vec<(String, OsString)>,
    log: &mut Log,
) -> Result<Workdir, PresyncError> {
    make_room(source, root, log)?;
    Ok(workdir_of(source, stage, namespace, variables))
}

/// Takes what another run of Terraform left out of the root's folder, and puts in the file that points it to our backend.
fn make_room(source: &Source, root: &Root, log: &mut Log) -> Result<(), PresyncError> {
    for leftover in [".terraform", ERRORED] {
        if root.remove_leftover(leftover)? {
            let folder = &source.terraform;
            log.say(format_args!(
                "{folder}/{leftover} is in the commit and is not used: Terraform makes its own"
            ));
        }
    }
    Ok(root.write_override()?)
}

/// The root's folder, made ready before, with other variables.
pub fn workdir_of(
    source: &Source,
    stage: &StageName,
    namespace: Option<&Namespace>,
    mut variables: Vec<(String, OsString)>,
) -> Workdir {
    variables.push(("TF_VAR_stage".to_owned(), stage.as_str().into()));
    variables.extend(
        namespace.map(|namespace| ("TF_VAR_namespace".to_owned(), namespace.as_str().into())),
    );
    Workdir {
        folder: source.root.join(&source.terraform),
        variables,
    }
}

/// Says which variable files Terraform gets.
pub fn say_variables(source: &Source, log: &mut Log) {
    log.say(variables_line(source));
}

/// As paths in the clone.
fn variables_line(source: &Source) -> String {
    if source.config_files.is_none() {
        return format!(
            "the clone has no {}/: planning without its tfvars",
            source.config
        );
    }
    let files = source.tfvars.iter().map(|file| {
        let inside = file.strip_prefix(&source.root).unwrap_or(file);
        inside.display().to_string()
    });
    let files: Vec<String> = files.collect();
    if files.is_empty() {
        let pattern = &source.tfvars_pattern;
        return format!(
            "no variables: no file of {}/ matches {pattern}",
            source.config
        );
    }
    format!("variables from {}", files.join(", "))
}

/// `terraform init`, after which the backend in force is ours.
pub async fn init(
    terraform: &Terraform,
    workdir: &Workdir,
    root: &Root,
    log: &mut Log,
    stop: &mut Stop,
) -> Result<(), PresyncError> {
    let mut arguments: Vec<OsString> = ["init", "-input=false", "-no-color"]
        .map(OsString::from)
        .into();
    if root.has_lock_file() {
        arguments.push("-lockfile=readonly".into());
    }
    let cache = tokio::select! {
        lock = lock_plugin_cache() => lock?,
        signal = stop.next() => return Err(PresyncError::Stopped(signal)),
    };
    let initialised = terraform
        .run(workdir, &arguments, DEADLINE, GRACE, stop, |piece| {
            log.child(piece);
        })
        .await;
    drop(cache);
    log.end_child();
    initialised?;
    backend_in_force(&workdir.folder)
}

/// `terraform plan` to `file`, and what it would change. Whoever needs the lock holds it already.
pub async fn plan_to_file(
    terraform: &Terraform,
    workdir: &Workdir,
    tfvars: &[PathBuf],
    file: &Path,
    log: &mut Log,
    stop: &mut Stop,
) -> Result<Changes, PresyncError> {
    let json = plan_as_json(terraform, workdir, tfvars, file, log, stop).await?;
    Ok(Changes::read(&json)?)
}

/// The same, with what the attributes hold before and after.
pub async fn plan_with_values(
    terraform: &Terraform,
    workdir: &Workdir,
    tfvars: &[PathBuf],
    file: &Path,
    log: &mut Log,
    stop: &mut Stop,
) -> Result<(Changes, Values), PresyncError> {
    let json = plan_as_json(terraform, workdir, tfvars, file, log, stop).await?;
    let read = PlanValues::read(&json)?;
    let mut mask = log.masking().clone();
    mask.add(read.hidden.clone());
    let masking = Masking {
        masked: &|text| mask.masked_value(text),
        longest: mask.secrets().first().map_or(0, Vec::len),
    };
    Ok((Changes::read(&json)?, read.bounded(masking)))
}

async fn plan_as_json(
    terraform: &Terraform,
    workdir: &Workdir,
    tfvars: &[PathBuf],
    file: &Path,
    log: &mut Log,
    stop: &mut Stop,
) -> Result<Vec<u8>, PresyncError> {
    let mut arguments: Vec<OsString> = ["plan", "-input=false", "-no-color", "-lock=false"]
        .map(OsString::from)
        .into();
    arguments.push(option("-out=", file));
    arguments.extend(tfvars.iter().map(|file| option("-var-file=", file)));
    let planned = terraform
        .run(workdir, &arguments, DEADLINE, GRACE, stop, |piece| {
            log.child(piece);
        })
        .await;
    log.end_child();
    planned?;
    let show = ["show".into(), "-json".into(), file.into()];
    tokio::select! {
        json = terraform.read(workdir, &show) => Ok(json?),
        signal = stop.next() => Err(PresyncError::Stopped(signal)),
    }
}

/// Reads back which backend init settled on: whatever a file of the root said, it must be ours.
pub fn backend_in_force(folder: &Path) -> Result<(), PresyncError> {
    #[derive(serde::Deserialize)]
    struct Settled {
        backend: Option<Backend>,
    }
    #[derive(serde::Deserialize)]
    struct Backend {
        #[serde(rename = "type")]
        kind: String,
        config: Config,
    }
    /// An address in the configuration would go before the one in the environment.
    #[derive(serde::Deserialize)]
    struct Config {
        address: Option<String>,
    }
    let settled = std::fs::read(folder.join(".terraform/terraform.tfstate"))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Settled>(&bytes).ok())
        .and_then(|settled| settled.backend);
    let found = match settled {
        Some(Backend { kind, config }) if kind == "http" => match config.address {
            None => return Ok(()),
            Some(_) => "another HTTP backend".to_owned(),
        },
        Some(Backend { kind, .. }) => format!("the backend {kind:?}"),
        None => "a local file".to_owned(),
    };
    Err(PresyncError::BackendInForce { found })
}

/// The lines of a plan's changes.
pub fn say_changes(changes: &Changes, log: &mut Log) {
    let count = changes.resources.len();
    if count > 0 {
        log.say(format_args!("the plan carries {count} change(s):"));
        for change in &changes.resources {
            log.say(change);
        }
    } else if !changes.outputs.is_empty() {
        let count = changes.outputs.len();
        log.say(format_args!(
            "the plan carries no changes to resources and {count} to outputs:"
        ));
        for change in &changes.outputs {
            log.say(change);
        }
    } else {
        log.say("the plan carries no changes");
    }
    for gone in &changes.gone {
        log.say(gone);
    }
}

/// The program with its version.
pub fn name_of(terraform: &Terraform) -> String {
    format!("{} {}", terraform.flavour(), terraform.version())
}

fn option(name: &str, file: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(file);
    option
}
