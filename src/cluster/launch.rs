//! A launch in the cluster: its Job made once and known again, looked at, and removed with its pods.

mod error;

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions, PropagationPolicy};
use tokio::time::Instant;

use super::job::{BUILD, CONFIRMED, Launch, MANAGED_BY, Place, RUN, TARGET, TARGET_HASH};
use super::start::{self, Hindrance, Started, Wait};
use super::{Cluster, ClusterError, verdict};
use crate::report;

pub use error::LaunchError;
pub(super) use error::remedy;

/// The pause between two looks at what is waited for.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a Job is looked for that may have been made: a webhook may take 30 s.
const UNCERTAIN: Duration = Duration::from_secs(40);
/// How long what an ended launch left behind may take to go.
const LEFTOVER: Duration = Duration::from_secs(60);
/// The label by which a Job's pods name it
/// (<https://kubernetes.io/docs/reference/labels-annotations-taints/#batchkubernetesio-controller-uid>).
const CONTROLLER: &str = "batch.kubernetes.io/controller-uid";

/// A Job that we have made.
#[derive(Clone)]
pub struct Launched {
    cluster: Cluster,
    namespace: String,
    name: String,
    uid: String,
}

/// What stands in a launch's place.
pub enum Prepared {
    /// Nothing any more.
    Free(Box<Ready>),
    /// A running one that carries out the same confirmation.
    Same(Box<Launched>),
}

/// A launch whose name is free.
pub struct Ready {
    cluster: Cluster,
    namespace: String,
    name: String,
    run: String,
    job: Job,
}

/// Looks whether `launch` can be made, and removes an ended Job of the same name. One that runs, for the same target or
/// under the same name, is an error, unless it destroys what this one was confirmed to destroy. Nothing is made; safe to drop.
pub async fn prepare(
    cluster: &Cluster,
    launch: &Launch,
    place: &Place,
) -> Result<Prepared, LaunchError> {
    let namespace = place.namespace.as_str();
    let name = launch.name.clone();
    let run = run_id();
    let job = launch.job(place, &run).map_err(LaunchError::Template)?;
    let jobs: Api<Job> = Api::namespaced(cluster.client(), namespace);
    let selector = format!(
        "{}={},{TARGET_HASH}={}",
        MANAGED_BY.0,
        MANAGED_BY.1,
        launch.target_hash()
    );
    let same_target = cluster
        .ask(jobs.list(&ListParams::default().labels(&selector)))
        .await
        .map_err(|source| failed("looking for running Jobs in", namespace, "", source))?;
    for other in &same_target.items {
        if verdict::is_running(other) {
            if carries_out_the_same(other, launch) {
                let same = Launched::of(cluster, namespace, other);
                return Ok(Prepared::Same(Box::new(same)));
            }
            return Err(running(namespace, other));
        }
    }
    if let Some(there) = get(cluster, &jobs, namespace, &name).await? {
        let label = there
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(MANAGED_BY.0));
        if label.map(String::as_str) != Some(MANAGED_BY.1) {
            return Err(LaunchError::Foreign {
                namespace: namespace.to_owned(),
                name,
            });
        }
        if verdict::is_running(&there) {
            return Err(running(namespace, &there));
        }
        let leftover = Launched::of(cluster, namespace, &there);
        if let Err(Left(what)) = leftover.remove(LEFTOVER).await {
            return Err(LaunchError::LeftoverStays { what });
        }
    }
    Ok(Prepared::Free(Box::new(Ready {
        cluster: cluster.clone(),
        namespace: namespace.to_owned(),
        name,
        run,
        job,
    })))
}

/// Whether a running Job carries out what this launch was confirmed to. One that is being deleted will not come to its end.
fn carries_out_the_same(job: &Job, launch: &Launch) -> bool {
    let annotations = job.metadata.annotations.as_ref();
    let carried_out = annotations.and_then(|all| all.get(CONFIRMED));
    let confirmed = launch.confirmed.as_ref();
    confirmed.is_some_and(|confirmed| carried_out == Some(&confirmed.digest))
        && job.metadata.deletion_timestamp.is_none()
}

impl Ready {
    /// Its name, with the namespace.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Makes the Job. Not to be dropped before its end: it might be made without our knowing.
    pub async fn make(&self) -> Result<Launched, LaunchError> {
        let Ready {
            cluster,
            namespace,
            name,
            run,
            job,
        } = self;
        let jobs: Api<Job> = Api::namespaced(cluster.client(), namespace);
        let launched = |job: &Job| Launched::of(cluster, namespace, job);
        let source = match cluster.ask(jobs.create(&PostParams::default(), job)).await {
            Ok(job) => return Ok(launched(&job)),
            Err(error) => error,
        };
        if source.code().is_some_and(|code| code != 409 && code < 500) {
            return Err(LaunchError::NotMade {
                namespace: namespace.clone(),
                name: name.clone(),
                source,
            });
        }
        // The answer may have been lost, come late, or be one to a second request of the client's own: the Job that stands
        // there is ours by its run.
        let give_up = Instant::now() + UNCERTAIN;
        loop {
            match get(cluster, &jobs, namespace, name).await {
                Ok(Some(there)) if is_of(&there, run) => return Ok(launched(&there)),
                Ok(Some(there)) => return Err(running(namespace, &there)),
                Ok(None) | Err(_) if Instant::now() < give_up => tokio::time::sleep(PAUSE).await,
                Ok(None) | Err(_) => {
                    return Err(LaunchError::Uncertain {
                        namespace: namespace.clone(),
                        name: name.clone(),
                        source,
                    });
                }
            }
        }
    }
}

fn is_of(job: &Job, run: &str) -> bool {
    let annotations = job.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(RUN)).map(String::as_str) == Some(run)
}

async fn get(
    cluster: &Cluster,
    jobs: &Api<Job>,
    namespace: &str,
    name: &str,
) -> Result<Option<Job>, LaunchError> {
    let job = cluster.ask(jobs.get_opt(name)).await;
    job.map_err(|source| failed("looking at the Job", namespace, name, source))
}

fn failed(act: &str, namespace: &str, name: &str, source: ClusterError) -> LaunchError {
    let object = if name.is_empty() {
        namespace.to_owned()
    } else {
        format!("{namespace}/{name}")
    };
    LaunchError::Cluster {
        act: format!("{act} {object}"),
        source,
    }
}

fn running(namespace: &str, job: &Job) -> LaunchError {
    let annotation = |name: &str| {
        let annotations = job.metadata.annotations.as_ref()?;
        annotations.get(name).cloned()
    };
    let since = job.metadata.creation_timestamp.as_ref();
    LaunchError::Running {
        namespace: namespace.to_owned(),
        name: job.metadata.name.clone().unwrap_or_default(),
        target: annotation(TARGET).unwrap_or_else(|| "an unknown target".to_owned()),
        since: since.map_or_else(|| "an unknown time".to_owned(), |time| time.0.to_string()),
        build: annotation(BUILD).map_or_else(String::new, |build| format!(", for {build}")),
    }
}

fn run_id() -> String {
    let mut bytes = [0_u8; 16];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        // Without it a Job of ours that was made twice is taken for another run's, which is an error and no harm.
        Err(_) => format!("pid-{}", std::process::id()),
    }
}

/// What could not be removed in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left(pub String);

impl Launched {
    fn of(cluster: &Cluster, namespace: &str, job: &Job) -> Launched {
        Launched {
            cluster: cluster.clone(),
            namespace: namespace.to_owned(),
            name: job.metadata.name.clone().unwrap_or_default(),
            uid: job.metadata.uid.clone().unwrap_or_default(),
        }
    }

    /// Its name, with the namespace.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The Job as it is. `None`: it is gone, or another one has its name.
    pub async fn job(&self) -> Result<Option<Job>, ClusterError> {
        let jobs: Api<Job> = Api::namespaced(self.cluster.client(), &self.namespace);
        let job = self.cluster.ask(jobs.get_opt(&self.name)).await?;
        Ok(job.filter(|job| job.metadata.uid.as_deref() == Some(&self.uid)))
    }

    /// Its pods as they are.
    pub async fn pods(&self) -> Result<Vec<Pod>, ClusterError> {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client(), &self.namespace);
        let selector = format!("{CONTROLLER}={}", self.uid);
        let of_job = ListParams::default().labels(&selector);
        Ok(self.cluster.ask(pods.list(&of_job)).await?.items)
    }

    /// Its pod; the first, should there ever be two.
    pub async fn pod(&self) -> Result<Option<Pod>, ClusterError> {
        let mut pods = self.pods().await?;
        pods.sort_by_key(|pod| pod.metadata.creation_timestamp.clone().map(|time| time.0));
        Ok(pods.into_iter().next())
    }

    /// The warnings about it and its pod. Where events may not be read there are none.
    async fn events(&self, pod: Option<&Pod>) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.cluster.client(), &self.namespace);
        let uids = [
            Some(self.uid.clone()),
            pod.and_then(|pod| pod.metadata.uid.clone()),
        ];
        let mut all = Vec::new();
        for uid in uids.into_iter().flatten() {
            let list = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
            match self.cluster.ask(events.list(&list)).await {
                Ok(found) => all.extend(found.items),
                Err(error) => tracing::debug!(%error, "the events could not be read"),
            }
        }
        all
    }

    /// Waits until presync's container runs, or has run, for at most `patience`; while the Job is suspended, as long once more. An
    /// API server that does not answer is waited for as well.
    pub async fn start(&self, patience: Duration) -> Result<Pod, LaunchError> {
        let mut wait = Wait::begin(Instant::now());
        loop {
            match self.look().await {
                Ok(Look::Gone) => {
                    return Err(LaunchError::Vanished {
                        namespace: self.namespace.clone(),
                        name: self.name.clone(),
                    });
                }
                Ok(Look::Started(pod)) => return Ok(*pod),
                Ok(Look::Hindered(hindrance, hopeless)) => {
                    if wait.see(&hindrance, Instant::now()) {
                        let name = self.full_name();
                        report::note(format_args!("{name} waits: {hindrance}"));
                    }
                    let waited = wait.lasts(Instant::now());
                    if hopeless || waited >= patience {
                        return Err(LaunchError::NeverStarted {
                            namespace: self.namespace.clone(),
                            name: self.name.clone(),
                            waited,
                            hindrance,
                        });
                    }
                }
                Err(source) => {
                    let denied = matches!(source.code(), Some(401 | 403));
                    if denied || wait.lasts(Instant::now()) >= patience {
                        return Err(failed(
                            "looking at the Job",
                            &self.namespace,
                            &self.name,
                            source,
                        ));
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn look(&self) -> Result<Look, ClusterError> {
        let Some(job) = self.job().await? else {
            return Ok(Look::Gone);
        };
        let pod = self.pod().await?;
        // Events are worth a request only where something stands in the way.
        let started = match start::judge(&job, pod.as_ref(), &[]) {
            Started::Yes => Started::Yes,
            _ => start::judge(&job, pod.as_ref(), &self.events(pod.as_ref()).await),
        };
        Ok(match (started, pod) {
            (Started::Yes, Some(pod)) => Look::Started(Box::new(pod)),
            (Started::Yes, None) => Look::Gone,
            (Started::NotYet(hindrance), _) => Look::Hindered(hindrance, false),
            (Started::Never(hindrance), _) => Look::Hindered(hindrance, true),
        })
    }

    /// Orders the Job to be deleted, in the foreground: it goes when its pods have gone. `Ok` when there is none any more.
    pub async fn delete(&self) -> Result<(), ClusterError> {
        let jobs: Api<Job> = Api::namespaced(self.cluster.client(), &self.namespace);
        let parameters = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            preconditions: Some(Preconditions {
                uid: Some(self.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.cluster.ask(jobs.delete(&self.name, &parameters)).await {
            Ok(_) => Ok(()),
            // 409: another Job has this name by now.
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes the Job and waits until it and its pods are gone, at most for `patience`.
    pub async fn remove(&self, patience: Duration) -> Result<(), Left> {
        let give_up = Instant::now() + patience;
        let mut ordered = false;
        loop {
            let what_is_left = match self.step_of_removal(&mut ordered).await {
                Ok(None) => return Ok(()),
                Ok(Some(left)) => left,
                Err(error) => format!(": {}", report::one_line(&error)),
            };
            if Instant::now() >= give_up {
                return Err(Left(format!("the Job {}{what_is_left}", self.full_name())));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Orders the deletion once, and looks at what is still there; nothing when all is gone.
    async fn step_of_removal(&self, ordered: &mut bool) -> Result<Option<String>, ClusterError> {
        if !*ordered {
            self.delete().await?;
            *ordered = true;
        }
        let job = self.job().await?;
        let pods = self.pods().await?;
        let names: Vec<String> = pods
            .into_iter()
            .filter_map(|pod| pod.metadata.name)
            .collect();
        Ok(match (job, names.as_slice()) {
            (None, []) => None,
            (Some(_), []) => Some(String::new()),
            (_, names) => Some(format!(" with its pod {}", names.join(", "))),
        })
    }
}

/// One look at a launch that has not started.
enum Look {
    Gone,
    Started(Box<Pod>),
    /// And whether that is for good.
    Hindered(Hindrance, bool),
}
