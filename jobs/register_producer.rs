//! `stagewright-register-producer`: register who publishes a part of the architecture model, once a green build has archived it.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use stagewright::arguments::SharedArguments;
use stagewright::child;
use stagewright::names::{AppPath, JobName, OwnedRepo, ProducerId};
use stagewright::producers::Producer;
use stagewright::register_producer::{self, Change, Mode, PROGRAM, RegisterReport, Wanted};
use stagewright::report::{self, Failure, Outcome};
use stagewright::stop::Stop;
use stagewright::write_probe;

const EXAMPLE: &str = "To try it without any set-up:
  stagewright-register-producer --sandbox --id pgadmin-deploy --repo example/PlatformDeploy \\
    --jenkins-job AaC/PlatformDeploy --app-path pgadmin --dry-run";

/// Register who publishes a part of the architecture model, once a green build has archived it
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, after_help = EXAMPLE)]
struct Cli {
    /// The producer's id: APP-deploy or APP-STAGE-deploy for a deploy repository
    #[arg(long, required_unless_present = "write_probe")]
    id: Option<ProducerId>,
    /// The repository that the job builds, spelled as the forge spells it
    #[arg(long, value_name = "OWNER/NAME", required_unless_present_any = ["remove", "write_probe"])]
    repo: Option<OwnedRepo>,
    /// The job that archives the artifact, with its folders
    #[arg(long, value_name = "JOB", required_unless_present_any = ["remove", "write_probe"])]
    jenkins_job: Option<JobName>,
    /// The app's folder in a monorepo; every producer of a job that has several needs it
    #[arg(long, alias = "path", value_name = "PATH")]
    app_path: Option<AppPath>,
    /// Show the change of the file as a diff, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Let an entry that is there say this of repository, job and path
    #[arg(long, conflicts_with = "remove")]
    repoint: bool,
    /// Take the entry out
    #[arg(long, conflicts_with_all = ["repo", "jenkins_job", "app_path"])]
    remove: bool,
    /// Register nothing: try every write of the forge github on a scratch branch of this repository, which goes again
    #[arg(long, value_name = "OWNER/REPO",
          conflicts_with_all = ["id", "repo", "jenkins_job", "app_path", "dry_run", "repoint", "remove", "result", "report"])]
    write_probe: Option<OwnedRepo>,
    /// The number of the build that asks
    #[arg(long, value_name = "N", env = "STAGEWRIGHT_BUILD")]
    build: Option<String>,
    /// Its address, for people
    #[arg(long, value_name = "URL", env = "STAGEWRIGHT_BUILD_URL")]
    build_url: Option<String>,
    /// Who asks, for the commit [default: the build's address, else the user]
    #[arg(long, value_name = "WHO", env = "STAGEWRIGHT_REQUESTED_BY")]
    requested_by: Option<String>,
    #[command(flatten)]
    shared: SharedArguments,
}

/// What is to be done.
enum Asked {
    Change(Box<Wanted>),
    Probe(OwnedRepo),
}

impl Cli {
    fn asked(&self) -> Result<Asked, clap::Error> {
        match (&self.write_probe, &self.id) {
            (Some(repo), _) => Ok(Asked::Probe(repo.clone())),
            (None, Some(id)) => Ok(Asked::Change(Box::new(self.wanted(id)?))),
            // clap asks for one of the two.
            (None, None) => Err(Cli::command().error(ErrorKind::MissingRequiredArgument, "--id")),
        }
    }

    fn wanted(&self, id: &ProducerId) -> Result<Wanted, clap::Error> {
        self.shared.distinct(&[], Cli::command())?;
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let build = given(&self.build).map(|text| {
            text.parse().map_err(|_| {
                let text = format!("--build: {text:?} is no number");
                Cli::command().error(ErrorKind::ValueValidation, text)
            })
        });
        let change = match &self.jenkins_job {
            None => Change::Remove(id.clone()),
            Some(job) => {
                let producer = Producer {
                    id: id.clone(),
                    repo: self.repo.clone(),
                    job: job.clone(),
                    path: self.app_path.clone(),
                    is_self: false,
                    default_logo: None,
                };
                match self.repoint {
                    true => Change::Repoint(producer),
                    false => Change::Register(producer),
                }
            }
        };
        Ok(Wanted {
            change,
            mode: if self.dry_run {
                Mode::Show
            } else {
                Mode::Commit
            },
            build: build.transpose()?,
            build_url: given(&self.build_url),
            requested_by: given(&self.requested_by),
        })
    }
}

fn main() -> ExitCode {
    if let Some(code) = child::become_program() {
        return code;
    }
    match Cli::try_parse().and_then(|cli| Ok((cli.asked()?, cli))) {
        Err(error) => report::arguments(&error),
        Ok((asked, cli)) => report::job(PROGRAM, run(asked, cli.shared)),
    }
}

async fn run(asked: Asked, shared: SharedArguments) -> Result<Outcome, Failure> {
    let mut stop = Stop::listen().map_err(Failure::no_signals)?;
    shared.prepare_files()?;
    let wanted = match asked {
        Asked::Probe(repo) => {
            return write_probe::probe(&repo, &shared.settings()?, &mut stop).await;
        }
        Asked::Change(wanted) => wanted,
    };
    let ended = match shared.settings() {
        Ok(settings) => register_producer::run(&wanted, &settings, &mut stop).await,
        Err(failure) => RegisterReport::failed(&wanted, failure),
    };
    ended.say(PROGRAM);
    shared.write_result(&ended.result())?;
    shared.write_report(|| ended.page())?;
    Ok(ended.outcome())
}
