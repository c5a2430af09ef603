//! The log of a pod's container, followed to its end: what the kubelet serves ends, hangs and fails for reasons of its
//! own, so only the container's status is taken for the end.

pub mod reassemble;
mod seen;
mod stamp;
mod window;

use std::pin::Pin;
use std::time::Duration;

use futures_util::{AsyncRead, AsyncReadExt};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::Api;
use kube::api::LogParams;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use self::reassemble::{Delivered, Gap, Part, Reassembly, Tail};
use self::seen::{Seen, seen};
use super::{Cluster, ClusterError};

/// The first and the longest wait before the log is asked for again.
const WAITS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// A pod that has ended, but whose log does not come to what was delivered, is read so often.
const LAST_READS: u32 = 3;
/// A refusal is believed when it has lasted for so long: an API server that has just begun knows nobody's rights yet.
const DENIED: Duration = Duration::from_secs(5);
/// Events that wait for their reader; nothing more is read from the API server until it takes one.
const WAITING: usize = 4;

/// Which log to follow.
#[derive(Clone, Debug)]
pub struct Container {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's UID: another pod of its name is not this one.
    pub uid: String,
    /// The container's name.
    pub container: String,
}

/// How long what may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Nothing new for so long is told, again and again.
    pub silence: Duration,
    /// A silent stream makes the pod be looked at so often.
    pub look: Duration,
    /// A stream silent for so long is opened anew: its connection may be dead.
    pub reopen: Duration,
    /// When the API server, or the kubelet behind it, has failed for so long, the log is given up.
    pub unreachable: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            silence: Duration::from_secs(30),
            look: Duration::from_secs(10),
            reopen: Duration::from_secs(60),
            unreachable: Duration::from_secs(300),
        }
    }
}

/// What happens to a log.
#[derive(Debug)]
pub enum Event {
    /// Exactly what the container wrote.
    Bytes(Vec<u8>),
    /// Here something may be missing.
    Gap(Gap),
    /// Nothing new has come for so long; and why, where that is known.
    Silent(Duration, Option<String>),
    /// Nothing follows.
    Ended(Ended),
}

/// How a log ended.
#[derive(Debug)]
pub struct Ended {
    /// What became of the container.
    pub end: End,
    /// How much was delivered.
    pub delivered: Delivered,
    /// Whether the log's end was seen.
    pub tail: Tail,
}

/// What became of the container.
#[derive(Debug)]
pub enum End {
    /// It ended, with exit code, reason and termination message.
    Terminated(ContainerStateTerminated),
    /// The pod ended, and the container's own end is not known: evicted, or its node is lost.
    PodEnded(String),
    /// There is no such pod any more.
    PodGone,
    /// The API server or the kubelet failed for too long; this was the last error.
    GivenUp(ClusterError),
    /// The account may not read it.
    Denied {
        /// What it may not do: `get pods`, or `get pods/log`.
        right: &'static str,
        /// In the server's words.
        source: ClusterError,
    },
}

/// A log that is being followed. Dropping it ends that.
#[derive(Debug)]
pub struct Log {
    events: mpsc::Receiver<Event>,
    task: JoinHandle<()>,
}

impl Log {
    /// Begins to follow. Must be called within a Tokio runtime.
    pub fn follow(cluster: &Cluster, container: Container, limits: Limits) -> Log {
        let (sender, events) = mpsc::channel(WAITING);
        let follower = Follower {
            pods: Api::namespaced(cluster.client_without_attempts(), &container.namespace),
            cluster: cluster.clone(),
            container,
            limits,
            log: Reassembly::default(),
            events: sender,
            new: Instant::now(),
            told: Instant::now(),
            why: None,
            failing: None,
            denied: None,
        };
        let task = tokio::spawn(follower.run());
        Log { events, task }
    }

    /// The next event; `None` behind the end. Safe to drop and ask again.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Nobody wants the rest.
struct Unwanted;

type Wanted<T> = Result<T, Unwanted>;

/// How a stream ended.
enum Stream {
    /// The API server ended it.
    End,
    /// It was broken off here, since nothing more came.
    Silent,
    /// It was never opened: the request has had no answer.
    Unanswered,
    Failed(ClusterError),
}

impl Stream {
    fn failed(self) -> Option<ClusterError> {
        match self {
            Stream::End | Stream::Silent | Stream::Unanswered => None,
            Stream::Failed(error) => Some(error),
        }
    }

    /// Whether it is the kubelet that does not answer, or the API server on its behalf.
    fn lacks_its_node(&self) -> bool {
        match self {
            Stream::End | Stream::Silent => false,
            Stream::Unanswered => true,
            Stream::Failed(error) => error.code().is_some_and(|code| code >= 500),
        }
    }
}

struct Follower {
    cluster: Cluster,
    pods: Api<Pod>,
    container: Container,
    limits: Limits,
    log: Reassembly,
    events: mpsc::Sender<Event>,
    /// When something new came last, and when a silence was told last.
    new: Instant,
    told: Instant,
    why: Option<String>,
    failing: Option<Instant>,
    /// Since when the account is refused.
    denied: Option<Instant>,
}

impl Follower {
    async fn run(mut self) {
        let Ok((end, tail)) = self.until_it_ended().await else {
            return;
        };
        let delivered = self.log.delivered();
        let ended = Ended {
            end,
            delivered,
            tail,
        };
        if self.events.send(Event::Ended(ended)).await.is_err() {
            tracing::debug!("nobody waits for the end of the log");
        }
    }

    async fn until_it_ended(&mut self) -> Wanted<(End, Tail)> {
        let mut wait = WAITS.0;
        let mut last_reads = 0;
        let mut last: Option<ContainerStateTerminated> = None;
        loop {
            let before = self.log.delivered();
            let mut right = "get pods/log";
            let (stream, ended) = match self.look().await? {
                Err(error) => {
                    right = "get pods";
                    (Stream::Failed(error), None)
                }
                Ok(Seen::Waiting(why)) => {
                    self.why = Some(why);
                    self.failing = None;
                    (Stream::Silent, None)
                }
                Ok(Seen::Running) => (self.stream(true).await?, None),
                Ok(Seen::Doubtful) => {
                    let stream = self.stream(true).await?;
                    if stream.lacks_its_node() {
                        let why = "its node does not answer".to_owned();
                        return Ok((End::PodEnded(why), Tail::NotSeen));
                    }
                    (stream, None)
                }
                Ok(Seen::Ended(End::PodGone)) => {
                    // An end that was seen is not forgotten when the pod goes.
                    return Ok((last.map_or(End::PodGone, End::Terminated), Tail::NotSeen));
                }
                Ok(Seen::Ended(end)) => {
                    if let End::Terminated(terminated) = &end {
                        last = Some(terminated.clone());
                    }
                    (self.stream(false).await?, Some(end))
                }
            };
            let quiet = self.log.delivered() == before;
            let to_its_end = matches!(stream, Stream::End);
            let failed = match stream.failed() {
                Some(source) if source.code() == Some(403) => {
                    if self.denied.get_or_insert_with(Instant::now).elapsed() >= DENIED {
                        return Ok((End::Denied { right, source }, Tail::NotSeen));
                    }
                    Some(source)
                }
                failed => {
                    self.denied = None;
                    failed
                }
            };
            if let Some(end) = ended {
                // A container that was never made has no log, and will have none.
                let answered = failed
                    .as_ref()
                    .is_none_or(|error| matches!(error.code(), Some(400 | 404)));
                last_reads += u32::from(quiet && answered);
                let seen = quiet && to_its_end && self.log.caught_up();
                if seen || last_reads == LAST_READS || (failed.is_some() && self.overdue()) {
                    let (parts, tail) = self.log.finish();
                    self.give(parts).await?;
                    return Ok((end, if to_its_end { tail } else { Tail::NotSeen }));
                }
            }
            if let Some(error) = failed {
                self.failing.get_or_insert_with(Instant::now);
                if self.overdue() {
                    return Ok((End::GivenUp(error), Tail::NotSeen));
                }
                self.why = Some(crate::report::one_line(&error));
            }
            wait = if quiet {
                (wait * 2).min(WAITS.1)
            } else {
                WAITS.0
            };
            self.during(tokio::time::sleep(wait)).await?;
        }
    }

    fn overdue(&self) -> bool {
        self.failing
            .is_some_and(|since| since.elapsed() >= self.limits.unreachable)
    }

    /// Reads the pod's status.
    async fn look(&mut self) -> Wanted<Result<Seen, ClusterError>> {
        let (cluster, pods) = (self.cluster.clone(), self.pods.clone());
        let name = self.container.pod.clone();
        let read = self
            .during(async move { cluster.ask(pods.get_opt(&name)).await })
            .await?;
        Ok(read.map(|pod| {
            let pod = pod.filter(|pod| pod.metadata.uid.as_ref() == Some(&self.container.uid));
            pod.map_or(Seen::Ended(End::PodGone), |pod| {
                seen(&pod, &self.container.container)
            })
        }))
    }

    /// Reads the log from where it broke off, until the stream ends, fails, or has been silent for too long.
    async fn stream(&mut self, follow: bool) -> Wanted<Stream> {
        let since = self.log.resume();
        let parameters = LogParams {
            container: Some(self.container.container.clone()),
            follow,
            timestamps: true,
            since_time: since.and_then(|second| jiff::Timestamp::from_second(second).ok()),
            ..LogParams::default()
        };
        let (pods, name) = (self.pods.clone(), self.container.pod.clone());
        // Old kubelets answer only when there is a first line: the answer is waited for like one.
        let mut source = Source::Asked(Box::pin(async move {
            let stream = pods.log_stream(&name, &parameters).await?;
            Ok(Box::pin(stream) as Body)
        }));
        let mut piece = vec![0; 64 * 1024];
        let mut heard = Instant::now();
        let mut look = heard + self.limits.look;
        let end = loop {
            let read = self
                .during(timeout_at(look, source.read(&mut piece)))
                .await?;
            match read {
                Ok(Ok(0)) => {
                    self.failing = None;
                    break Stream::End;
                }
                Ok(Ok(count)) => {
                    heard = Instant::now();
                    look = heard + self.limits.look;
                    self.failing = None;
                    let parts = self.log.push(piece.get(..count).unwrap_or_default());
                    self.give(parts).await?;
                }
                Ok(Err(error)) => break Stream::Failed(error.into()),
                Err(_silent) => {
                    let open = matches!(source, Source::Open(_));
                    if open {
                        self.failing = None;
                    }
                    if heard.elapsed() >= self.limits.reopen {
                        break if open {
                            Stream::Silent
                        } else {
                            Stream::Unanswered
                        };
                    }
                    // What remains of an ended log is waited for.
                    if follow && !matches!(self.look().await?, Ok(Seen::Running | Seen::Doubtful)) {
                        break Stream::Silent;
                    }
                    look = Instant::now() + self.limits.look;
                }
            }
        };
        self.why = self.log.aside();
        Ok(end)
    }

    async fn give(&mut self, parts: Vec<Part>) -> Wanted<()> {
        for part in parts {
            let event = match part {
                Part::Bytes(bytes) => Event::Bytes(bytes),
                Part::Gap(gap) => Event::Gap(gap),
            };
            self.events.send(event).await.map_err(|_| Unwanted)?;
            self.new = Instant::now();
            self.told = self.new;
            self.why = None;
        }
        Ok(())
    }

    /// Waits for something, and tells a silence meanwhile.
    async fn during<T>(&mut self, something: impl Future<Output = T>) -> Wanted<T> {
        tokio::pin!(something);
        loop {
            match timeout_at(self.told + self.limits.silence, &mut something).await {
                Ok(done) => return Ok(done),
                Err(_silent) => {
                    self.told = Instant::now();
                    let silent = Event::Silent(self.new.elapsed(), self.why.clone());
                    self.events.send(silent).await.map_err(|_| Unwanted)?;
                }
            }
        }
    }
}

type Body = Pin<Box<dyn AsyncRead + Send>>;

/// A stream that was asked for. Reading is safe to drop and begin again.
enum Source {
    Asked(Pin<Box<dyn Future<Output = kube::Result<Body>> + Send>>),
    Open(Body),
}

impl Source {
    async fn read(&mut self, piece: &mut [u8]) -> kube::Result<usize> {
        if let Source::Asked(asked) = self {
            *self = Source::Open(asked.await?);
        }
        match self {
            Source::Open(stream) => stream.read(piece).await.map_err(kube::Error::ReadEvents),
            Source::Asked(_) => Ok(0),
        }
    }
}
