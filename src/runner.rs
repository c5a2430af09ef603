//! Running presync by what the settings name, as a child of this job or as a Job in a cluster, and following its log to
//! the end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::cluster::Cluster;
use crate::cluster::job::{Confirmed, Launch, Place, Verb};
use crate::cluster::launch::LaunchError;
use crate::cluster::run::{Patience, RunError};
use crate::estate::{EstateError, of_cluster, open_cluster};
use crate::local::{self, LocalError};
use crate::names::{RepoUrl, Target};
use crate::presync::provenance::without_credentials;
use crate::report::{self, Outcome, Shown};
use crate::settings::{ForgeSettings, GitHubAccess, KubernetesSettings, RunnerSettings, Settings};
use crate::stop::{Stop, StopSignal};
use crate::transport::ended::Ended;
use crate::transport::follow::{Complete, Follower, LastLine};
use crate::transport::request::{BUILD_URL, DEADLINE, Estate, StageRequest};
use crate::transport::verdict;

/// How long the reader of a stopped run's log may take to read its end.
const AFTER_STOP: Duration = Duration::from_secs(2);

/// A run that may take as long as it takes; beyond this it hangs.
const LONGEST: Duration = Duration::from_secs(48 * 3600);

/// Why presync was not run to an end that could be judged.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each variant is one room's error, documented there, or one sentence"
)]
pub enum RunnerError {
    #[error(transparent)]
    Estate(#[from] EstateError),
    #[error("runner.local.sops_age_key_file in {} names {}, and there is no such file", file.display(), key_file.display())]
    NoKeyFile { key_file: PathBuf, file: PathBuf },
    #[error(transparent)]
    Run(Box<RunError>),
    #[error(transparent)]
    Local(#[from] LocalError),
}

impl From<RunError> for RunnerError {
    fn from(error: RunError) -> RunnerError {
        RunnerError::Run(Box::new(error))
    }
}

impl RunnerError {
    /// What it means for the exit code.
    pub fn outcome(&self) -> Outcome {
        match self {
            RunnerError::Estate(error) => error.outcome(),
            RunnerError::NoKeyFile { .. } => Outcome::Usage,
            RunnerError::Run(error) => match &**error {
                RunError::Launch(error) => of_launch(error),
                RunError::Unreachable { source, .. } | RunError::Denied { source, .. } => {
                    of_cluster(source)
                }
            },
            RunnerError::Local(_) => Outcome::Failed,
        }
    }
}

/// The variable that holds GitHub's token, unless it is one that presync itself reads, and keeps from Terraform.
fn own_variable(settings: &Settings) -> Option<String> {
    match &settings.forge {
        ForgeSettings::GitHub {
            access: GitHubAccess::TokenEnv(variable),
            ..
        } if !matches!(variable.as_str(), "GITHUB_TOKEN" | "GIT_PASSWORD") => {
            Some(variable.clone())
        }
        ForgeSettings::GitHub { .. } | ForgeSettings::Git { .. } => None,
    }
}

fn of_launch(error: &LaunchError) -> Outcome {
    match error {
        LaunchError::Running { .. } | LaunchError::Foreign { .. } => Outcome::Refused,
        LaunchError::Template(_) => Outcome::Usage,
        LaunchError::NotMade { .. } | LaunchError::NeverStarted { .. } => Outcome::NeverStarted,
        LaunchError::Vanished { .. } => Outcome::RunFailed,
        LaunchError::LeftoverStays { .. } => Outcome::Failed,
        LaunchError::Cluster { source, .. } | LaunchError::Uncertain { source, .. } => {
            of_cluster(source)
        }
    }
}

/// What runs presync.
pub enum Runner {
    /// This job, as its child.
    Local {
        /// A variable that holds a secret of the job's own, and that presync's Terraform has no use for.
        hidden: Option<String>,
    },
    /// The cluster, as a Job.
    Kubernetes(Box<InCluster>),
}

/// A cluster, and how Jobs are made there.
pub struct InCluster {
    /// The cluster.
    pub cluster: Cluster,
    /// How Jobs are made there.
    pub settings: KubernetesSettings,
}

/// One run of presync.
pub struct Asked<'a> {
    /// What it does.
    pub verb: Verb,
    /// The name of its Job, where it is one.
    pub name: String,
    /// For which stage.
    pub target: &'a Target,
    /// At which commit.
    pub request: &'a StageRequest,
    /// presync's arguments.
    pub arguments: Vec<String>,
    /// Its environment.
    pub environment: BTreeMap<&'static str, String>,
    /// The build that asks for it.
    pub build: Option<&'a str>,
    /// How long it may take.
    pub bound: Bound,
    /// What it carries out, where it destroys.
    pub confirmed: Option<Confirmed>,
}

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// As long as a plan.
    Plan,
    /// As long as it takes: cut off half-way it would leave a part.
    None,
}

/// How a run ended, with what it left in its log.
pub struct Ran<R> {
    /// How it ended.
    pub ended: Ended,
    /// Whether its log is here whole.
    pub complete: Complete,
    /// Its record, where the log is whole and held one.
    pub record: Option<R>,
    /// The last line of its log.
    pub last_line: Option<String>,
    /// The signal that ended the wait for the log's reader.
    pub cut: Option<StopSignal>,
}

impl<R> Ran<R> {
    /// What the run's end means for the job.
    pub fn outcome(&self) -> Outcome {
        if let Some(signal) = self.cut {
            return Outcome::of_stop(signal);
        }
        let class = self.ended.summary.as_ref().map(|summary| summary.class);
        verdict::of_run(class, &self.complete, self.ended.stopped)
    }
}

impl Runner {
    /// Looks whether the runner of the settings can be used, before anything is read for it.
    pub async fn open(settings: &Settings) -> Result<Runner, RunnerError> {
        match &settings.runner {
            RunnerSettings::Local {
                sops_age_key_file: Some(file),
            } if !file.is_file() => Err(RunnerError::NoKeyFile {
                key_file: file.clone(),
                file: settings.file.clone(),
            }),
            RunnerSettings::Local { .. } => Ok(Runner::Local {
                hidden: own_variable(settings),
            }),
            RunnerSettings::Kubernetes(kubernetes) => {
                let context = kubernetes.context.as_deref();
                let cluster = open_cluster(context, "runner.kubernetes", settings).await?;
                Ok(Runner::Kubernetes(Box::new(InCluster {
                    cluster,
                    settings: (**kubernetes).clone(),
                })))
            }
        }
    }

    /// Where it runs, in words.
    pub fn place(&self) -> String {
        match self {
            Runner::Local { .. } => "this machine".to_owned(),
            Runner::Kubernetes(there) => there.settings.context.as_ref().map_or_else(
                || "this pod's cluster".to_owned(),
                |context| format!("the cluster of the context {context}"),
            ),
        }
    }

    /// Says where the Job of this name runs.
    pub fn say(&self, name: &str) {
        match self {
            Runner::Local { .. } => {
                report::heading("runner", "local: presync as a child of this job");
            }
            Runner::Kubernetes(there) => {
                let namespace = &there.settings.namespace;
                let place = self.place();
                report::heading(
                    "runner",
                    format_args!("kubernetes: the Job {namespace}/{name} in {place}"),
                );
            }
        }
    }

    /// The environment of any run of presync: where the state is, and how the estate is laid out.
    pub fn environment(
        &self,
        settings: &Settings,
        state_url: RepoUrl,
    ) -> BTreeMap<&'static str, String> {
        let program = settings.terraform.program.as_ref();
        // A path leads to nothing in an image.
        let is_local = matches!(self, Runner::Local { .. });
        let program = program.filter(|program| is_local || program.components().count() == 1);
        let estate = Estate {
            state_url,
            state_branch: settings.state.branch.clone(),
            state_prefix: settings.state.prefix.clone(),
            layout: settings.layout.to_json(),
            terraform: program.map(|program| program.display().to_string()),
            protect: settings.protect.clone(),
        };
        let mut environment = estate.environment();
        if let RunnerSettings::Local {
            sops_age_key_file: Some(file),
        } = &settings.runner
        {
            environment.insert("SOPS_AGE_KEY_FILE", file.display().to_string());
        }
        environment
    }

    /// Runs presync, shows its log as it comes, and takes the record out of it.
    pub async fn run<R: DeserializeOwned>(
        &self,
        asked: &Asked<'_>,
        shown: Shown,
        stop: &mut Stop,
    ) -> Result<Ran<R>, RunnerError> {
        let mut follower = Follower::default();
        let mut last_line = LastLine::default();
        let follow = |piece: &[u8]| {
            let piece = follower.push(piece);
            last_line.push(&piece);
            piece
        };
        let ended = self.launch(asked, &shown, stop, follow).await?;
        // Before anything else can go wrong.
        if let Some(left) = &ended.left {
            report::note(format_args!("left running: {left}"));
        }
        let (rest, followed) = follower.finish::<R>();
        last_line.push(&rest);
        let rest = [ended.waiting.as_slice(), &rest].concat();
        let cut = show_rest(shown, rest, ended.stopped, stop).await?;
        let (complete, record) = match &ended.summary {
            Some(summary) => followed.against(summary),
            None => (Complete::No(format!("presync {}", ended.end)), None),
        };
        // What was marked as a gap may have been none: the counts tell.
        let complete = match complete {
            Complete::No(what) if ended.gaps > 0 => Complete::No(format!(
                "{what}; the log could not be read without a gap in {} place(s), marked there",
                ended.gaps
            )),
            complete => complete,
        };
        if cut.is_none() && !ended.complaints.is_empty() {
            report::note(&ended.complaints);
        }
        Ok(Ran {
            ended,
            complete,
            record,
            last_line: last_line.finish(),
            cut,
        })
    }

    async fn launch(
        &self,
        asked: &Asked<'_>,
        shown: &Shown,
        stop: &mut Stop,
        follow: impl FnMut(&[u8]) -> Vec<u8>,
    ) -> Result<Ended, RunnerError> {
        let there = match self {
            Runner::Kubernetes(there) => there,
            Runner::Local { hidden } => {
                let bound = match asked.bound {
                    Bound::Plan => DEADLINE,
                    Bound::None => LONGEST,
                };
                let hidden = hidden.as_deref();
                let mut environment = asked.environment.clone();
                let build = asked.build.map(without_credentials);
                environment.extend(build.map(|build| (BUILD_URL, build)));
                let ran = local::run(
                    &asked.arguments,
                    (&environment, hidden),
                    bound,
                    stop,
                    shown,
                    follow,
                );
                return Ok(ran.await?);
            }
        };
        let settings = match asked.verb {
            Verb::Plan => there.settings.clone(),
            Verb::Destroy => there.settings.for_destroy(),
        };
        let launch = Launch {
            verb: asked.verb,
            name: asked.name.clone(),
            target: asked.target.to_string(),
            revision: asked.request.revision.to_string(),
            build: asked.build.map(without_credentials),
            arguments: asked.arguments.clone(),
            environment: asked.environment.clone(),
            deadline: match asked.bound {
                Bound::Plan => Some(settings.deadline),
                Bound::None => None,
            },
            confirmed: asked.confirmed.clone(),
        };
        let patience = Patience {
            start: settings.start_deadline,
            unreachable: settings.unreachable,
        };
        let place = Place::from(settings);
        let run = crate::cluster::run::run;
        Ok(run(
            &there.cluster,
            &launch,
            &place,
            patience,
            stop,
            shown,
            follow,
        )
        .await?)
    }
}

/// Shows what is left of the log and waits until all of it is written; a signal ends that wait. After a stop the reader
/// gets little time, and may be gone: a Ctrl-C ends it as well.
async fn show_rest(
    shown: Shown,
    mut rest: Vec<u8>,
    stopped: Option<StopSignal>,
    stop: &mut Stop,
) -> Result<Option<StopSignal>, RunnerError> {
    let written = async {
        if !rest.is_empty() {
            // Where nothing can be shown any more, finish() says why.
            let _refused = shown.take(&mut rest).await;
        }
        shown.finish().await
    };
    if stopped.is_some() {
        let _late = tokio::time::timeout(AFTER_STOP, written).await;
        return Ok(None);
    }
    tokio::select! {
        written = written => match written {
            Ok(()) => Ok(None),
            Err(error) => Err(LocalError::Show(error).into()),
        },
        signal = stop.next() => Ok(Some(signal)),
    }
}
