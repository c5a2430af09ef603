//! The Job of a launch, as an object: its name, labels, limits, and its one container, over a pod template of the
//! estate's own.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::names::{Namespace, Target};
use crate::settings::KubernetesSettings;

/// The label and the value by which our Jobs are known.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "stagewright");
/// The label that tells what a Job does.
const NAME: &str = "app.kubernetes.io/name";
/// The label that all Jobs of one target share.
pub const TARGET_HASH: &str = "stagewright/target-hash";
/// The annotations that tell people what a Job is for.
pub const TARGET: &str = "stagewright/target";
/// The commit that the Job works on.
const REVISION: &str = "stagewright/revision";
/// The build that made it.
pub const BUILD: &str = "stagewright/build-url";
/// The digest of what a destroy carries out.
pub const CONFIRMED: &str = "stagewright/confirmed";
/// A random value that one run of a job gives to its Job, so that it knows it again.
pub const RUN: &str = "stagewright/run";
/// The one container's name.
pub const CONTAINER: &str = "presync";
/// The longest name of a Job: its pods carry it as a label
/// (<https://kubernetes.io/docs/concepts/workloads/controllers/job/#writing-a-job-spec>).
const LONGEST_NAME: usize = 63;
/// What a stopped presync gets to save its state and to clean up.
pub const GRACE: Duration = Duration::from_secs(600);
/// How long a pod stays on a node that does not answer before it is given up.
const LOST_NODE: u64 = 60;

/// What a launch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `presync plan`.
    Plan,
    /// `presync destroy`.
    Destroy,
}

impl Verb {
    /// The value of the label, and how names of its Jobs begin.
    fn name(self) -> &'static str {
        match self {
            Verb::Plan => "tf-plan",
            Verb::Destroy => "destroy-stage",
        }
    }
}

/// Where and as whom a launch runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The namespace of the Job.
    pub namespace: Namespace,
    /// The image that holds presync.
    pub image: String,
    /// When the image is pulled (`Always`, `IfNotPresent`, `Never`); the cluster's default when not set.
    pub pull_policy: Option<String>,
    /// The account that the pod works as.
    pub service_account: String,
    /// The Secret whose keys become the container's environment.
    pub secret: String,
    /// A pod template of the estate's own, beneath what we set.
    pub pod_template: Map<String, Value>,
    /// How long the cluster keeps a Job that we could not remove.
    pub ttl: Duration,
}

impl From<KubernetesSettings> for Place {
    fn from(settings: KubernetesSettings) -> Place {
        Place {
            namespace: settings.namespace,
            image: settings.image,
            pull_policy: settings.pull_policy,
            service_account: settings.service_account,
            secret: settings.secret,
            pod_template: settings.pod_template,
            ttl: settings.keep,
        }
    }
}

/// One launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// What it does.
    pub verb: Verb,
    /// The Job's name.
    pub name: String,
    /// For whom, as people write it.
    pub target: String,
    /// The commit it works on.
    pub revision: String,
    /// The build that asked for it.
    pub build: Option<String>,
    /// presync's arguments.
    pub arguments: Vec<String>,
    /// presync's environment beside the Secret; nothing of it is secret.
    pub environment: BTreeMap<&'static str, String>,
    /// How long it may run.
    pub deadline: Option<Duration>,
    /// What it carries out, where it destroys.
    pub confirmed: Option<Confirmed>,
}

/// What a launch that destroys was confirmed to carry out.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmed {
    /// The digest of what the preview bound.
    pub digest: String,
    /// The image that made the preview, as its pod's status names it.
    pub image: Option<String>,
}

impl Confirmed {
    /// The image of the settings, held to the content that made the preview: `<name>:<tag>@sha256:…`, of which a node takes the
    /// digest and leaves the tag to readers. `None` where the settings name a digest themselves, and where the node that ran the preview
    /// knew none: an image that was loaded there and never pulled has only an id of its own.
    pub fn pin(&self, image: &str) -> Option<String> {
        let (_, digest) = self.image.as_deref()?.rsplit_once('@')?;
        (digest.starts_with("sha256:") && !image.contains('@')).then(|| format!("{image}@{digest}"))
    }
}

impl Launch {
    /// The name of the Job that plans for this namespace.
    pub fn plan_name(namespace: &Namespace) -> String {
        shortened(&format!("{}-{namespace}", Verb::Plan.name()))
    }

    /// The name of the Job that destroys a stage, or previews that: by its build's number, else by the target.
    pub fn destroy_name(build: Option<u64>, target: &Target) -> String {
        let whose = build.map_or_else(|| hash(&target.to_string()), |number| number.to_string());
        shortened(&format!("{}-{whose}", Verb::Destroy.name()))
    }

    /// The value of [`TARGET_HASH`].
    pub fn target_hash(&self) -> String {
        hash(&self.target)
    }

    /// The Job. `run` is this run's own random value.
    pub fn job(&self, place: &Place, run: &str) -> Result<Job, serde_json::Error> {
        let labels = json!({
            NAME: self.verb.name(),
            MANAGED_BY.0: MANAGED_BY.1,
            TARGET_HASH: self.target_hash(),
        });
        let mut annotations = json!({ TARGET: self.target, REVISION: self.revision, RUN: run });
        let more = [
            (BUILD, self.build.as_deref()),
            (
                CONFIRMED,
                self.confirmed.as_ref().map(|c| c.digest.as_str()),
            ),
        ];
        for (name, value) in more {
            if let (Some(value), Some(annotations)) = (value, annotations.as_object_mut()) {
                annotations.insert(name.to_owned(), value.into());
            }
        }
        let mut spec = json!({
            // One run at a time, and never a second one by itself.
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": place.ttl.as_secs(),
        });
        if let (Some(deadline), Some(spec)) = (self.deadline, spec.as_object_mut()) {
            spec.insert(
                "activeDeadlineSeconds".to_owned(),
                deadline.as_secs().into(),
            );
        }
        let mut template = Value::Object(place.pod_template.clone());
        merge(&mut template, self.pod(place, &labels, &annotations));
        merge(&mut spec, json!({ "template": template }));
        serde_json::from_value(json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": self.name,
                "namespace": place.namespace.as_str(),
                "labels": labels,
                "annotations": annotations,
            },
            "spec": spec,
        }))
    }

    fn pod(&self, place: &Place, labels: &Value, annotations: &Value) -> Value {
        let mut environment: Vec<Value> = self
            .environment
            .iter()
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect();
        environment.push(json!({
            "name": crate::transport::request::JOB_UID,
            "valueFrom": { "fieldRef": { "fieldPath": "metadata.labels['batch.kubernetes.io/controller-uid']" } },
        }));
        if let Some(build) = &self.build {
            let name = crate::transport::request::BUILD_URL;
            environment.push(json!({ "name": name, "value": build }));
        }
        let confirmed = self.confirmed.as_ref();
        let image = confirmed.and_then(|confirmed| confirmed.pin(&place.image));
        let mut container = json!({
            "name": CONTAINER,
            "image": image.as_deref().unwrap_or(&place.image),
            "command": ["presync"],
            "args": self.arguments,
            "env": environment,
            "envFrom": [{ "secretRef": { "name": place.secret } }],
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        });
        if let (Some(policy), Some(container)) = (&place.pull_policy, container.as_object_mut()) {
            container.insert("imagePullPolicy".to_owned(), policy.as_str().into());
        }
        let lost = |condition: &str| json!({ "key": condition, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOST_NODE });
        json!({
            "metadata": { "labels": labels, "annotations": annotations },
            "spec": {
                "restartPolicy": "Never",
                "serviceAccountName": place.service_account,
                "terminationGracePeriodSeconds": GRACE.as_secs(),
                "tolerations": [
                    lost("node.kubernetes.io/not-ready"),
                    lost("node.kubernetes.io/unreachable"),
                ],
                "containers": [container],
            },
        })
    }
}

/// Lays `above` over `beneath`: maps are merged, lists of named things by their names, other lists appended, and every
/// other value of `above` wins.
fn merge(beneath: &mut Value, above: Value) {
    match (beneath, above) {
        (Value::Object(beneath), Value::Object(above)) => {
            for (name, value) in above {
                match beneath.get_mut(&name) {
                    // What runs, and with which credentials, is ours alone.
                    Some(there) if !matches!(name.as_str(), "command" | "args" | "envFrom") => {
                        merge(there, value);
                    }
                    _ => {
                        beneath.insert(name, value);
                    }
                }
            }
        }
        (Value::Array(beneath), Value::Array(above)) => {
            for value in above {
                let same = value.get("name").and_then(|name| {
                    let at = beneath.iter().position(|b| b.get("name") == Some(name))?;
                    beneath.get_mut(at)
                });
                match same {
                    Some(there) => merge(there, value),
                    None => beneath.push(value),
                }
            }
        }
        (beneath, above) => *beneath = above,
    }
}

/// A name of at most 63 characters: a longer one is cut, and a hash of the whole keeps it apart from others.
fn shortened(name: &str) -> String {
    if name.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    let hash = hash(name);
    let kept: String = name.chars().take(LONGEST_NAME - 1 - hash.len()).collect();
    format!("{}-{hash}", kept.trim_end_matches('-'))
}

/// 16 hexadecimal digits.
fn hash(text: &str) -> String {
    let sum = Sha256::digest(text.as_bytes());
    sum.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            namespace: "hooks".parse().unwrap(),
            image: "registry.example.org/presync:1".to_owned(),
            pull_policy: None,
            service_account: "tf-plan".to_owned(),
            secret: "credentials".to_owned(),
            pod_template: Map::new(),
            ttl: Duration::from_secs(7200),
        }
    }

    fn launch() -> Launch {
        Launch {
            verb: Verb::Plan,
            name: Launch::plan_name(&"headlamp-prd".parse().unwrap()),
            target: "PlatformDeploy/headlamp/prd".to_owned(),
            revision: "1".repeat(40),
            build: None,
            arguments: vec!["plan".to_owned(), "file:///x".to_owned()],
            environment: BTreeMap::from([("STAGEWRIGHT_STATE_URL", "file:///s".to_owned())]),
            deadline: Some(Duration::from_secs(1800)),
            confirmed: None,
        }
    }

    fn job(place: &Place, launch: &Launch) -> Value {
        serde_json::to_value(launch.job(place, "r").unwrap()).unwrap()
    }

    #[test]
    fn a_job_runs_presync_once_with_the_accounts_secret_and_no_second_pod() {
        let job = job(&place(), &launch());
        assert_eq!(job["metadata"]["name"], "tf-plan-headlamp-prd");
        let spec = &job["spec"];
        assert_eq!(spec["backoffLimit"], 0);
        assert_eq!(spec["podReplacementPolicy"], "Failed");
        assert_eq!(spec["activeDeadlineSeconds"], 1800);
        let pod = &spec["template"]["spec"];
        assert_eq!(pod["restartPolicy"], "Never");
        assert_eq!(pod["serviceAccountName"], "tf-plan");
        assert_eq!(pod["terminationGracePeriodSeconds"], 600);
        let container = &pod["containers"][0];
        assert_eq!(container["command"], json!(["presync"]));
        assert_eq!(container["args"], json!(["plan", "file:///x"]));
        assert_eq!(
            container["envFrom"],
            json!([{ "secretRef": { "name": "credentials" } }])
        );
    }

    #[test]
    fn a_destroy_runs_the_image_that_made_its_preview_and_says_what_it_carries_out() {
        let previewed = |image: Option<&str>, settings: &str| {
            let launch = Launch {
                confirmed: Some(Confirmed {
                    digest: "sha256:feed".to_owned(),
                    image: image.map(str::to_owned),
                }),
                ..launch()
            };
            let place = Place {
                image: settings.to_owned(),
                ..place()
            };
            let job = job(&place, &launch);
            assert_eq!(job["metadata"]["annotations"][CONFIRMED], "sha256:feed");
            let image = &job["spec"]["template"]["spec"]["containers"][0]["image"];
            image.as_str().unwrap().to_owned()
        };
        let pulled = Some("registry.example.org/presync@sha256:0a0b");
        assert_eq!(
            previewed(pulled, "registry.example.org/presync:1"),
            "registry.example.org/presync:1@sha256:0a0b"
        );
        // What is loaded on a node alone has an id, and no digest in a registry.
        for unknown in [None, Some("sha256:0a0b")] {
            assert_eq!(previewed(unknown, "presync:1"), "presync:1");
        }
        let by_digest = "presync@sha256:0c0d";
        assert_eq!(previewed(pulled, by_digest), by_digest);
    }

    #[test]
    fn a_pod_template_lies_beneath_and_cannot_change_what_runs() {
        let mut place = place();
        let template = json!({
            "metadata": { "labels": { "team": "a", "app.kubernetes.io/name": "other" } },
            "spec": {
                "serviceAccountName": "admin",
                "nodeSelector": { "kubernetes.io/os": "linux" },
                "tolerations": [{ "key": "ci", "operator": "Exists" }],
                "containers": [
                    { "name": "presync", "command": ["sh"], "envFrom": [{ "secretRef": { "name": "x" } }], "env": [{ "name": "A", "value": "1" }],
                      "resources": { "limits": { "memory": "1Gi" } } },
                    { "name": "proxy", "image": "p" },
                ],
            },
        });
        place.pod_template = template.as_object().unwrap().clone();
        let job = job(&place, &launch());
        let template = &job["spec"]["template"];
        assert_eq!(template["metadata"]["labels"]["team"], "a");
        assert_eq!(template["metadata"]["labels"][NAME], "tf-plan");
        let pod = &template["spec"];
        assert_eq!(pod["serviceAccountName"], "tf-plan");
        assert_eq!(pod["nodeSelector"]["kubernetes.io/os"], "linux");
        assert_eq!(pod["tolerations"].as_array().unwrap().len(), 3);
        let container = &pod["containers"][0];
        assert_eq!(container["command"], json!(["presync"]));
        assert_eq!(container["envFrom"][0]["secretRef"]["name"], "credentials");
        assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
        assert_eq!(container["env"][0]["name"], "A");
        assert_eq!(pod["containers"][1]["name"], "proxy");
    }

    #[test]
    fn a_long_name_is_cut_and_stays_apart_from_its_like() {
        let named =
            |end: &str| Launch::plan_name(&format!("{}{end}", "n".repeat(62)).parse().unwrap());
        let (one, other) = (named("a"), named("b"));
        assert_eq!(one.len(), 63);
        assert_ne!(one, other);
        assert!(one.starts_with("tf-plan-nnn"));
    }
}
