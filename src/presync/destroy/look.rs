//! What a destroy would take, found out on a copy of the state: what is forgotten, what Terraform plans to destroy, and
//! what of it a person must know.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::Mutex;

use crate::names::{Namespace, StateKey};
use crate::presync::PresyncError;
use crate::presync::environment::Environment;
use crate::presync::log::Log;
use crate::presync::prepare::{self, Prepared};
use crate::presync::source::Source;
use crate::preview::{Bound, Preview, VERSION, Versions};
use crate::scratch::Scratch;
use crate::state_backend::http::{Backend, Serves};
use crate::state_backend::store::Store;
use crate::state_backend::store::around::Around;
use crate::stop::Stop;
use crate::terraform::changes::{Action, Changes};
use crate::terraform::forget::{self, Forgotten};
use crate::terraform::inventory::Inventory;
use crate::terraform::values::Values;

use crate::terraform::reduction::Reduction;
use crate::terraform::root::Root;
use crate::terraform::{Terraform, Workdir};
use crate::transport::record::{StatePosition, StateSeen};
use crate::transport::request::StageRequest;

/// How many addresses one `terraform state rm` gets.
const AT_ONCE: usize = 200;

/// Reduces the root and puts it in the place of the one that was checked out.
fn reduce(root: &Root, source: &Source, log: &mut Log) -> Result<Reduction, PresyncError> {
    let reduction = root.reduce(&source.terraform)?;
    for file in reduction.files() {
        log.say(file);
    }
    reduction.write(&source.root.join(&source.terraform))?;
    Ok(reduction)
}

/// What is in the state repository.
pub struct Found {
    /// The state, opened.
    pub state: Option<Vec<u8>>,
    /// What stands around it.
    pub around: Around,
}

/// Everything that was made ready, but for the state.
pub struct Ground {
    /// The run's private folder.
    pub scratch: Scratch,
    /// The program.
    pub terraform: Terraform,
    /// The sources on disk.
    pub source: Source,
    /// The root module, as it was.
    pub root: Root,
    /// What is left of it.
    pub reduction: Reduction,
    /// Where the state is kept.
    pub key: StateKey,
    /// What Terraform's providers get of the pod's account.
    pub cluster: Vec<(String, OsString)>,
}

impl Ground {
    /// Reduces what was prepared; the states are handed back.
    pub fn reduced(prepared: Prepared, log: &mut Log) -> Result<(Ground, Store), PresyncError> {
        let Prepared {
            scratch,
            terraform,
            source,
            root,
            key,
            store,
            account: _,
            cluster,
        } = prepared;
        let reduction = reduce(&root, &source, log)?;
        prepare::say_variables(&source, log);
        let ground = Ground {
            scratch,
            terraform,
            source,
            root,
            reduction,
            key,
            cluster,
        };
        Ok((ground, store))
    }
}

/// With what a stage is looked at.
pub struct Look<'a> {
    pub request: &'a StageRequest,
    pub environment: &'a Environment,
    pub ground: &'a Ground,
}

/// What came of the plan.
#[derive(Default)]
pub(super) struct Planned {
    pub(super) changes: Changes,
    values: Values,
    providers: BTreeMap<String, String>,
    /// Outputs and objects of the state before anything was forgotten.
    pub(super) inventory: Inventory,
    pub(super) forgotten: Vec<Forgotten>,
}

impl Look<'_> {
    /// Finds out what a destroy would take, and says it.
    pub async fn at(
        &self,
        found: Found,
        log: &mut Log,
        stop: &mut Stop,
    ) -> Result<Preview, PresyncError> {
        let Ground {
            terraform,
            source,
            key,
            ..
        } = self.ground;
        let Found { state, around } = found;
        let config = self.config(log).await?;
        let head = state
            .as_deref()
            .map(|state| prepare::read_head(state, key, terraform));
        let head = head.transpose()?;
        let planned = match state {
            Some(state) => self.plan(state, log, stop).await?,
            None => {
                log.say(format_args!(
                    "the backend holds no state at {key}: nothing to destroy"
                ));
                Planned::default()
            }
        };
        let folder = key.folder();
        if head.is_some() {
            log.say(format_args!(
                "an apply removes {folder}/ from the state repository"
            ));
        } else {
            log.say(format_args!(
                "the state repository has no {folder}/: nothing to remove"
            ));
        }
        let repo = self
            .request
            .url
            .repo_name()
            .map_err(PresyncError::RepoName)?;
        let told = self.told(&planned, around, folder, config);
        let Planned {
            changes,
            values,
            providers,
            forgotten,
            ..
        } = planned;
        let bound = Bound {
            repo,
            path: self.request.path.clone(),
            stage: self.request.stage.clone(),
            namespace: self.environment.namespace.clone(),
            trees: source.trees.clone(),
            state: StateSeen {
                key: key.clone(),
                position: head.map(|head| StatePosition {
                    lineage: head.lineage,
                    serial: head.serial,
                }),
            },
            versions: Versions {
                stagewright: env!("CARGO_PKG_VERSION").to_owned(),
                terraform: prepare::name_of(terraform),
                providers,
            },
            changes: sorted(changes.resources, |c| {
                (c.address.clone(), c.deposed.clone())
            }),
            outputs: sorted(changes.outputs, |o| o.name.clone()),
            gone: sorted(changes.gone, |g| (g.address.clone(), g.deposed.clone())),
            forgotten: sorted(forgotten, |f| f.address.clone()),
        };
        Ok(Preview {
            version: VERSION,
            revision: self.request.revision.clone(),
            bound,
            told,
            values,
        })
    }

    /// Plans on a copy of the state, from which what is forgotten was dropped.
    async fn plan(
        &self,
        state: Vec<u8>,
        log: &mut Log,
        stop: &mut Stop,
    ) -> Result<Planned, PresyncError> {
        let Ground {
            scratch,
            terraform,
            source,
            root,
            reduction,
            key,
            cluster,
        } = self.ground;
        let unusable = |source| PresyncError::State {
            key: key.to_string(),
            source,
        };
        let inventory = Inventory::read(&state).map_err(unusable)?;
        let namespace = self.environment.namespace.as_ref();
        let forgotten = forget::namespaced(&inventory, namespace.map(Namespace::as_str));
        say_forgotten(&forgotten, log);
        let dropped: BTreeSet<&str> = forgotten.iter().map(|f| f.address.as_str()).collect();
        let left = || {
            let instances = inventory.instances().iter();
            instances.filter(|instance| !dropped.contains(instance.address.as_str()))
        };
        if left().next().is_none() {
            log.say("the state lists no resources to destroy");
            return Ok(Planned {
                inventory: inventory.clone(),
                forgotten: forgotten.clone(),
                ..Planned::default()
            });
        }
        reduction.check_providers(left().map(|instance| instance.provider.as_str()))?;
        self.say_namespace(log);
        let copy = Arc::new(Mutex::new(Some(Bytes::from(state))));
        let backend = Backend::start(Serves::Copy(Arc::clone(&copy))).await?;
        log.mask(vec![backend.password().to_owned()]);
        let variables = [backend.variables(), cluster.clone()].concat();
        let stage = &self.request.stage;
        let workdir = prepare::workdir(source, root, stage, namespace, variables, log)?;
        prepare::init(terraform, &workdir, root, log, stop).await?;
        let addresses: Vec<&str> = forgotten.iter().map(|f| f.address.as_str()).collect();
        forget_in(terraform, &workdir, &addresses, stop).await?;
        log.say(format_args!(
            "planning against a copy of {key}: nothing is applied"
        ));
        let file = scratch.path().join("plan");
        let (changes, values) =
            prepare::plan_with_values(terraform, &workdir, &source.tfvars, &file, log, stop)
                .await?;
        prepare::say_changes(&changes, log);
        let told: BTreeSet<&str> = changes
            .resources
            .iter()
            .map(|change| change.address.as_str())
            .chain(changes.gone.iter().map(|gone| gone.address.as_str()))
            .collect();
        let untold = left().map(|i| i.address.clone());
        let untold: Vec<String> = untold.filter(|a| !told.contains(a.as_str())).collect();
        only_destroys(key, &changes, &untold)?;
        let providers = providers(terraform, &workdir, stop).await?;
        Ok(Planned {
            changes,
            values,
            providers,
            inventory,
            forgotten,
        })
    }

    /// Says of a namespace that the root wants and nobody has given.
    fn say_namespace(&self, log: &mut Log) {
        let mut variables = self.ground.reduction.variables().iter();
        let wanted = variables.any(|v| v.name == "namespace" && !v.has_default);
        let given =
            self.environment.namespace.is_some() || std::env::var_os("TF_VAR_namespace").is_some();
        if wanted && !given {
            log.say("the root wants var.namespace, and no namespace was given: unless the stage's variable files set it, give --namespace NS");
        }
    }
}

fn say_forgotten(forgotten: &[Forgotten], log: &mut Log) {
    if forgotten.is_empty() {
        log.say("the state holds no namespaced Kubernetes object: nothing to forget");
        return;
    }
    log.say(format_args!(
        "an apply forgets {} namespaced Kubernetes object(s), which are not destroyed:",
        forgotten.len()
    ));
    for object in forgotten {
        log.say(object);
    }
}

/// Drops the addresses from the state that the working folder's backend serves.
pub async fn forget_in(
    terraform: &Terraform,
    workdir: &Workdir,
    addresses: &[&str],
    stop: &mut Stop,
) -> Result<(), PresyncError> {
    for addresses in addresses.chunks(AT_ONCE) {
        let mut arguments: Vec<OsString> = vec!["state".into(), "rm".into(), "-lock=false".into()];
        arguments.extend(addresses.iter().map(OsString::from));
        tokio::select! {
            dropped = terraform.read(workdir, &arguments) => dropped?,
            signal = stop.next() => return Err(PresyncError::Stopped(signal)),
        };
    }
    Ok(())
}

/// Refuses a plan that does anything else than to take things away, or that leaves something of the state.
fn only_destroys(key: &StateKey, changes: &Changes, untold: &[String]) -> Result<(), PresyncError> {
    let taking = |action: Action| {
        matches!(
            action,
            Action::Destroy | Action::Forget | Action::Read | Action::Nothing
        )
    };
    let others = changes.resources.iter().filter(|c| !taking(c.action));
    let others: Vec<String> = others.map(ToString::to_string).collect();
    if !others.is_empty() {
        return Err(PresyncError::NotOnlyDestroys {
            changes: others.join("; "),
        });
    }
    if !untold.is_empty() {
        return Err(PresyncError::Untold {
            key: key.clone(),
            addresses: untold.join(", "),
        });
    }
    Ok(())
}

/// The providers that init chose, with their versions.
async fn providers(
    terraform: &Terraform,
    workdir: &Workdir,
    stop: &mut Stop,
) -> Result<BTreeMap<String, String>, PresyncError> {
    #[derive(serde::Deserialize)]
    struct Selected {
        #[serde(default)]
        provider_selections: BTreeMap<String, String>,
    }
    let arguments = ["version".into(), "-json".into()];
    let json = tokio::select! {
        json = terraform.read(workdir, &arguments) => json?,
        signal = stop.next() => return Err(PresyncError::Stopped(signal)),
    };
    let selected: Selected = serde_json::from_slice(&json).map_err(PresyncError::Versions)?;
    Ok(selected.provider_selections)
}

fn sorted<T, K: Ord>(mut all: Vec<T>, by: impl Fn(&T) -> K) -> Vec<T> {
    all.sort_by_key(by);
    all
}
