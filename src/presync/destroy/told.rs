//! What a person needs to know beside the changes: what holds data, what is no longer heeded, what stands around the state
//! and the stage's config folder.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::{Remote, history};
use crate::presync::PresyncError;
use crate::presync::log::Log;
use crate::preview::{ConfigFolder, Data, Note, StateFolder, Told, Written};
use crate::state_backend::store::around::Around;
use crate::terraform::data_bearing;
use crate::terraform::inventory::Inventory;
use crate::terraform::reduction::{self, Notes};
use crate::terraform::root::join_in_clone;

use super::look::{Ground, Look, Planned};

impl Look<'_> {
    /// What is left of the stage's folder in the deploy repository.
    pub(super) async fn config(&self, log: &mut Log) -> Result<ConfigFolder, PresyncError> {
        let Ground {
            scratch, source, ..
        } = self.ground;
        let mut config = ConfigFolder {
            path: source.config.clone(),
            files: source.config_files.clone().unwrap_or_default(),
            last_seen: None,
        };
        if source.config_files.is_some() {
            return Ok(config);
        }
        let deploy = Remote::new(self.request.url.clone(), self.environment.credentials()?);
        let folder = scratch.path().join("history.git");
        let revision = &self.request.revision;
        config.last_seen =
            history::last_with_folder(&deploy, &folder, revision, &config.path).await?;
        let without = self.without_value();
        if !without.is_empty() {
            let path = &config.path;
            let last = match &config.last_seen {
                Some(commit) => format!("; the last commit that had it is {commit}"),
                None => String::new(),
            };
            log.say(format_args!(
                "{path}/ is gone, and with it any values of {}{last}",
                without.join(", ")
            ));
        }
        Ok(config)
    }

    /// The variables that have no value now that the stage's variable files are gone, unless the root's own files set it.
    fn without_value(&self) -> Vec<String> {
        if self.ground.source.config_files.is_some() {
            return Vec::new();
        }
        let given = |name: &str| {
            name == "stage"
                || (name == "namespace" && self.environment.namespace.is_some())
                || std::env::var_os(format!("TF_VAR_{name}")).is_some()
        };
        let variables = self.ground.reduction.variables().iter();
        variables
            .filter(|variable| !variable.has_default && !given(&variable.name))
            .map(|variable| variable.name.clone())
            .collect()
    }

    pub(super) fn told(
        &self,
        planned: &Planned,
        around: Around,
        folder: &str,
        config: ConfigFolder,
    ) -> Told {
        let destroyed = || {
            let changes = planned.changes.resources.iter();
            changes.filter(|change| change.action.destroys())
        };
        let instances = destroyed().filter_map(|change| planned.inventory.at(&change.address));
        let mut data: Vec<Data> = Vec::new();
        let mut webhooks = Vec::new();
        for instance in instances {
            if let Some(held) = data_bearing::of(instance) {
                data.push(Data {
                    address: instance.address.clone(),
                    what: held.what.to_owned(),
                    identity: held.identity,
                });
            }
            if data_bearing::WEBHOOKS.contains(&instance.kind.as_str()) {
                webhooks.push(instance.address.clone());
            }
        }
        data.dedup();
        let notes = self.notes();
        let in_state = planned.inventory.instances().iter();
        let in_state: BTreeSet<&str> = in_state.map(|i| i.resource.as_str()).collect();
        // A resource that was never made has nothing to lose.
        let stands = |note: &&reduction::Note| in_state.contains(note.address.as_str());
        let mut lifted = Vec::new();
        for change in destroyed() {
            if let Some(pattern) = self.environment.protect.over(&change.address) {
                lifted.push(Note {
                    address: change.address.clone(),
                    what: format!("protected by {pattern}, which stops an apply and not a destroy"),
                    place: None,
                });
            }
        }
        let told = |note: &reduction::Note, what: &str| Note {
            address: note.address.clone(),
            what: what.to_owned(),
            place: Some(note.place.clone()),
        };
        for (notes, what) in [
            (
                &notes.prevent_destroy,
                "its prevent_destroy no longer binds",
            ),
            (
                &notes.not_destroyed,
                "lifecycle { destroy = false }: forgotten, not destroyed, where the state says so too",
            ),
            (
                &notes.skip_destroy,
                "skip_destroy: the provider leaves the object where it is",
            ),
        ] {
            lifted.extend(notes.iter().filter(stands).map(|note| told(note, what)));
        }
        let removed = "a removed block: forgotten and not destroyed";
        lifted.extend(notes.forgotten.iter().map(|note| told(note, removed)));
        let run = "the provisioner of its removed block runs with the destroy";
        lifted.extend(notes.run.iter().map(|note| told(note, run)));
        let provisioners = notes.destroy_provisioners.iter().filter(stands);
        let provisioners =
            provisioners.map(|note| told(note, "its destroy-time provisioner does not run"));
        let mut warnings = Vec::new();
        let in_state = planned.inventory.instances().iter();
        let in_state = in_state.map(|instance| instance.provider.as_str());
        for provider in self.ground.reduction.unpinned_providers(in_state) {
            warnings.push(format!(
                "no lock file and no constraint says the version of {provider}: the newest is taken, which may not be the one that wrote the state"
            ));
        }
        warnings.extend(notes.unread.iter().map(|place| {
            format!("{place} could not be looked at for provisioners and protections")
        }));
        warnings.extend(self.unseen_modules(&planned.inventory));
        Told {
            written: around.written.map(|written| Written {
                commit: written.commit,
                by: written.by,
                at: written.at,
            }),
            data,
            webhooks,
            lifted,
            provisioners: provisioners.collect(),
            all_gone: all_gone(planned),
            warnings,
            state_folder: StateFolder {
                path: folder.to_owned(),
                beside: around.beside,
                proof: around.proof,
                near: around.near,
            },
            config,
            objects: planned.inventory.objects(),
            without_value: self.without_value(),
        }
    }

    /// What is said of the modules that are not in the clone, and of which the state lists something.
    fn unseen_modules(&self, inventory: &Inventory) -> Vec<String> {
        let source = &self.ground.source;
        let folders = source.trees.keys();
        let folders = folders.filter(|folder| **folder != source.config);
        let mut unseen = Vec::new();
        for folder in folders {
            let notes = if *folder == source.terraform {
                self.ground.reduction.notes().clone()
            } else {
                let files = files_of(&source.root.join(folder));
                Notes::of_module(&files, folder, self.ground.terraform.flavour())
            };
            unseen.extend(notes.calls.into_iter().filter(|(call, from)| {
                let local = from.as_ref().filter(|from| from.starts_with('.'));
                let local = local.and_then(|from| join_in_clone(folder, from));
                let (one, many) = (format!("{}.", call.address), format!("{}[", call.address));
                !local.is_some_and(|local| source.trees.contains_key(&local))
                    && inventory.instances().iter().any(|instance| {
                        instance.address.contains(&one) || instance.address.contains(&many)
                    })
            }));
        }
        let unseen = unseen.into_iter();
        unseen
            .map(|(call, _)| {
                format!("{call} is a module outside of the clone, and was not looked at for provisioners and protections")
            })
            .collect()
    }

    /// Those of the root, and those of the local modules that are dropped with their calls.
    fn notes(&self) -> Notes {
        let source = &self.ground.source;
        let mut notes = self.ground.reduction.notes().clone();
        let modules = source.trees.keys();
        for folder in
            modules.filter(|folder| **folder != source.terraform && **folder != source.config)
        {
            let files = files_of(&source.root.join(folder));
            let flavour = self.ground.terraform.flavour();
            notes.extend(Notes::of_module(&files, folder, flavour));
        }
        notes
    }
}

/// The providers of which the state lists something, and all of it is gone.
fn all_gone(planned: &Planned) -> Vec<String> {
    let gone: BTreeSet<&str> = planned
        .changes
        .gone
        .iter()
        .map(|g| g.address.as_str())
        .collect();
    let forgotten: BTreeSet<&str> = planned
        .forgotten
        .iter()
        .map(|f| f.address.as_str())
        .collect();
    let mut all: BTreeMap<&str, bool> = BTreeMap::new();
    for instance in planned.inventory.instances() {
        if !forgotten.contains(instance.address.as_str()) {
            let is_gone = gone.contains(instance.address.as_str());
            *all.entry(&instance.provider).or_insert(true) &= is_gone;
        }
    }
    let all = all.into_iter().filter(|(_, gone)| *gone);
    all.map(|(provider, _)| provider.to_owned()).collect()
}

/// The files of a module's folder; one that cannot be read is Terraform's to tell of.
fn files_of(folder: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name, std::fs::read(entry.path()).ok()?))
        })
        .collect()
}
