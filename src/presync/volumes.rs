//! The reattach at the end of an apply: a PersistentVolume whose claim was deleted keeps that claim's UID and is never
//! bound again, also not by a claim of the same name. Without the UID only that claim can bind it, since name and
//! namespace stay.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::cluster::{Cluster, ClusterError, NotInPod, PodAccount};
use crate::names::Namespace;
use crate::report::one_line;

use super::log::Log;

/// How often a volume is judged and patched, when others change it at the same moment.
const TRIES: usize = 5;

/// Why volumes were not reattached.
#[derive(Debug, thiserror::Error)]
pub enum VolumesError {
    /// The cluster cannot be used.
    #[error("no volume was reattached")]
    Cluster(#[source] ClusterError),
    /// The rights are missing.
    #[error(
        "the service account may not {verb} PersistentVolumes, so not all were reattached: it needs a ClusterRole with the verbs get, list and patch on persistentvolumes, by a ClusterRoleBinding"
    )]
    Forbidden {
        /// What was refused.
        verb: &'static str,
        /// In the API server's words.
        #[source]
        source: ClusterError,
    },
    /// The list could not be read whole.
    #[error("the PersistentVolumes could not be listed, so none was reattached")]
    List(#[source] ClusterError),
    /// A volume that the judgement cannot be based on.
    #[error("the Kubernetes API gave a PersistentVolume without a name or a resourceVersion")]
    Incomplete,
    /// One volume could not be read again or patched.
    #[error("the PersistentVolume {volume} could not be reattached")]
    Volume {
        /// Its name.
        volume: String,
        /// Why.
        #[source]
        source: ClusterError,
    },
    /// Others kept changing it.
    #[error(
        "the PersistentVolume {volume} was not reattached: it was changed by others {TRIES} times between being read and being patched; run it again"
    )]
    Contended {
        /// Its name.
        volume: String,
    },
}

impl VolumesError {
    fn of(verb: &'static str, volume: &str, source: ClusterError) -> VolumesError {
        if source.code() == Some(403) {
            return VolumesError::Forbidden { verb, source };
        }
        VolumesError::Volume {
            volume: volume.to_owned(),
            source,
        }
    }

    /// Whether the API server answered, so that it may answer otherwise for the next volume.
    fn is_of_one_volume(&self) -> bool {
        match self {
            VolumesError::Forbidden { .. } | VolumesError::Contended { .. } => true,
            VolumesError::Volume { source, .. } => source.code().is_some(),
            VolumesError::Cluster(_) | VolumesError::List(_) | VolumesError::Incomplete => false,
        }
    }
}

/// What is known of a PersistentVolume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// The version that was read: a patch that carries another one is refused.
    pub resource_version: String,
    /// `status.phase`.
    pub phase: String,
    /// `spec.persistentVolumeReclaimPolicy`.
    pub reclaim_policy: String,
    /// Whether it is being deleted.
    pub in_deletion: bool,
    /// `spec.claimRef`.
    pub claim: Option<Claim>,
}

/// The claim that a PersistentVolume is reserved for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The one object that may bind the volume; any of that name where there is none.
    pub uid: Option<String>,
}

impl Volume {
    fn read(object: PersistentVolume) -> Result<Volume, VolumesError> {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (Some(name), Some(resource_version)) = (
            some(object.metadata.name),
            some(object.metadata.resource_version),
        ) else {
            return Err(VolumesError::Incomplete);
        };
        let spec = object.spec.unwrap_or_default();
        Ok(Volume {
            name,
            resource_version,
            phase: object.status.unwrap_or_default().phase.unwrap_or_default(),
            reclaim_policy: spec.persistent_volume_reclaim_policy.unwrap_or_default(),
            in_deletion: object.metadata.deletion_timestamp.is_some(),
            claim: spec.claim_ref.map(|claim| Claim {
                namespace: claim.namespace.unwrap_or_default(),
                name: claim.name.unwrap_or_default(),
                uid: some(claim.uid),
            }),
        })
    }
}

/// What is to be done with a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: another namespace's, in use, free, or reattached before.
    LeaveAlone,
    /// Its claim's UID goes.
    Reattach {
        /// The claim that can bind it then, as `<namespace>/<name>`.
        claim: String,
    },
    /// Reattached, it would go with its next claim: it is left alone until somebody wants to keep it.
    NotRetained {
        /// Its claim, as `<namespace>/<name>`.
        claim: String,
    },
    /// It would be gone before it was bound.
    InDeletion,
}

/// Judges one volume for the stage that lives in `namespace`.
pub fn judge(volume: &Volume, namespace: &Namespace) -> Verdict {
    let Some(claim) = &volume.claim else {
        return Verdict::LeaveAlone;
    };
    if claim.namespace != namespace.as_str() || volume.phase != "Released" || claim.uid.is_none() {
        return Verdict::LeaveAlone;
    }
    let name = format!("{}/{}", claim.namespace, claim.name);
    if volume.in_deletion {
        Verdict::InDeletion
    } else if volume.reclaim_policy == "Retain" {
        Verdict::Reattach { claim: name }
    } else {
        Verdict::NotRetained { claim: name }
    }
}

/// The claims that more than one volume would be reattached to, with the names of these.
fn doubled<'a>(volumes: &'a [Volume], namespace: &Namespace) -> Vec<(String, Vec<&'a str>)> {
    let mut of_claim: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for volume in volumes {
        if let Verdict::Reattach { claim } = judge(volume, namespace) {
            of_claim.entry(claim).or_default().push(&volume.name);
        }
    }
    of_claim.retain(|_, names| names.len() > 1);
    of_claim.into_iter().collect()
}

/// Makes the namespace's PersistentVolumes that are Released free for claims of the same name, and says what came of each.
/// Out of a pod it says that this is left out. It may be run again, and be dropped at any await: what was not done yet is
/// done by the next run.
pub async fn reattach(
    namespace: &Namespace,
    pod: &Result<PodAccount, NotInPod>,
    log: &mut Log,
) -> Result<(), VolumesError> {
    match pod {
        Ok(_) => {
            let cluster = Cluster::of_pod().map_err(VolumesError::Cluster)?;
            reattach_in(&cluster, namespace, log).await
        }
        Err(reason) => {
            log.say(format_args!(
                "the reattach of PersistentVolumes is skipped: {reason}"
            ));
            Ok(())
        }
    }
}

/// The same in a cluster that the caller chose.
pub async fn reattach_in(
    cluster: &Cluster,
    namespace: &Namespace,
    log: &mut Log,
) -> Result<(), VolumesError> {
    let api: Api<PersistentVolume> = Api::all(cluster.client());
    let listed = cluster.list(&api).await.map_err(|source| {
        if source.code() == Some(403) {
            return VolumesError::Forbidden {
                verb: "list",
                source,
            };
        }
        VolumesError::List(source)
    })?;
    let volumes = listed.into_iter().map(Volume::read);
    let mut volumes = volumes.collect::<Result<Vec<Volume>, VolumesError>>()?;
    volumes.retain(|volume| judge(volume, namespace) != Verdict::LeaveAlone);
    if volumes.is_empty() {
        log.say(format_args!(
            "no PersistentVolume of the namespace {namespace} is to be reattached"
        ));
    }
    for (claim, names) in doubled(&volumes, namespace) {
        let names = names.join(", ");
        log.say(format_args!(
            "warning: more than one PersistentVolume is Released by the claim {claim}, which may bind any of them: {names}"
        ));
    }
    let mut failed = None;
    for volume in volumes {
        match settle(cluster, &api, volume, namespace).await {
            Ok(line) => log.say(line),
            Err(error) if error.is_of_one_volume() => {
                if let Some(earlier) = failed.replace(error) {
                    log.say(one_line(&earlier));
                }
            }
            Err(error) => return Err(error),
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Does with one volume what the judgement says, and tells it in one line. A volume that was changed since it was read is
/// read and judged again.
async fn settle(
    cluster: &Cluster,
    api: &Api<PersistentVolume>,
    mut volume: Volume,
    namespace: &Namespace,
) -> Result<String, VolumesError> {
    let name = volume.name.clone();
    for _ in 0..TRIES {
        let claim = match judge(&volume, namespace) {
            Verdict::Reattach { claim } => claim,
            Verdict::LeaveAlone => {
                return Ok(format!(
                    "PersistentVolume {name}: needs no reattach any more, others changed it meanwhile"
                ));
            }
            Verdict::NotRetained { claim } => {
                let policy = volume.reclaim_policy;
                return Ok(format!(
                    "warning: PersistentVolume {name}: not reattached to the claim {claim}, its reclaim policy is {policy}: set persistentVolumeReclaimPolicy to Retain first"
                ));
            }
            Verdict::InDeletion => {
                return Ok(format!(
                    "PersistentVolume {name}: not reattached, it is being deleted"
                ));
            }
        };
        let patch = json!({
            "metadata": {"resourceVersion": volume.resource_version},
            "spec": {"claimRef": {"uid": null, "resourceVersion": null}},
        });
        let patched = cluster
            .ask(api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)))
            .await;
        match patched {
            Ok(_) => {
                return Ok(format!(
                    "PersistentVolume {name}: reattached, the claim {claim} can bind it again"
                ));
            }
            Err(error) => match error.code() {
                Some(409) => {}
                Some(404) => return Ok(gone(&name)),
                _ => return Err(VolumesError::of("patch", &name, error)),
            },
        }
        match cluster.ask(api.get_opt(&name)).await {
            Ok(Some(object)) => volume = Volume::read(object)?,
            Ok(None) => return Ok(gone(&name)),
            Err(error) => return Err(VolumesError::of("get", &name, error)),
        }
    }
    Err(VolumesError::Contended { volume: name })
}

fn gone(name: &str) -> String {
    format!("PersistentVolume {name}: not reattached, it is gone")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released() -> Volume {
        Volume {
            name: "pgadmin-prd-data".to_owned(),
            resource_version: "7".to_owned(),
            phase: "Released".to_owned(),
            reclaim_policy: "Retain".to_owned(),
            in_deletion: false,
            claim: Some(Claim {
                namespace: "pgadmin-prd".to_owned(),
                name: "data".to_owned(),
                uid: Some("3f0a".to_owned()),
            }),
        }
    }

    fn verdict(change: impl FnOnce(&mut Volume)) -> Verdict {
        let mut volume = released();
        change(&mut volume);
        judge(&volume, &"pgadmin-prd".parse().unwrap())
    }

    fn claim(volume: &mut Volume) -> &mut Claim {
        volume.claim.as_mut().unwrap()
    }

    #[test]
    fn a_released_volume_of_the_namespace_is_reattached_to_its_claim() {
        let claim = "pgadmin-prd/data".to_owned();
        assert_eq!(verdict(|_| ()), Verdict::Reattach { claim });
    }

    #[test]
    fn only_a_released_volume_is_touched() {
        for phase in ["Bound", "Available", "Pending", "Failed", ""] {
            let verdict = verdict(|volume| volume.phase = phase.to_owned());
            assert_eq!(verdict, Verdict::LeaveAlone, "{phase:?}");
        }
    }

    #[test]
    fn a_volume_of_another_namespace_or_of_none_is_left_alone() {
        for namespace in ["pgadmin-dev", "pgadmin", "pgadmin-prd-2", ""] {
            let verdict = verdict(|volume| claim(volume).namespace = namespace.to_owned());
            assert_eq!(verdict, Verdict::LeaveAlone, "{namespace:?}");
        }
        assert_eq!(verdict(|volume| volume.claim = None), Verdict::LeaveAlone);
    }

    #[test]
    fn a_volume_without_a_uid_was_reattached_before() {
        let verdict = verdict(|volume| claim(volume).uid = None);
        assert_eq!(verdict, Verdict::LeaveAlone);
    }

    #[test]
    fn a_volume_that_is_not_retained_is_not_reattached() {
        for policy in ["Delete", "Recycle", ""] {
            let verdict = verdict(|volume| volume.reclaim_policy = policy.to_owned());
            let claim = "pgadmin-prd/data".to_owned();
            assert_eq!(verdict, Verdict::NotRetained { claim }, "{policy:?}");
        }
    }

    #[test]
    fn two_volumes_for_one_claim_are_told_and_those_that_stay_do_not_count() {
        let named = |name: &str, change: fn(&mut Volume)| {
            let mut volume = released();
            volume.name = name.to_owned();
            change(&mut volume);
            volume
        };
        let volumes = [
            named("a", |_| ()),
            named("b", |volume| volume.reclaim_policy = "Delete".to_owned()),
            named("c", |volume| claim(volume).name = "logs".to_owned()),
            named("d", |_| ()),
        ];
        let namespace = "pgadmin-prd".parse().unwrap();
        assert_eq!(
            doubled(&volumes, &namespace),
            [("pgadmin-prd/data".to_owned(), vec!["a", "d"])]
        );
        assert_eq!(doubled(&volumes[..3], &namespace), []);
    }

    #[test]
    fn a_volume_in_deletion_is_not_reattached() {
        let verdict = verdict(|volume| volume.in_deletion = true);
        assert_eq!(verdict, Verdict::InDeletion);
    }
}
