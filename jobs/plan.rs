//! `stagewright-plan`: plan one stage at one commit, and show what its next sync would apply.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use stagewright::arguments::{SharedArguments, TargetArguments};
use stagewright::names::{BranchName, CommitPrefix, Namespace, Target};
use stagewright::plan::{self, OnChanges, PlanReport, Wanted};
use stagewright::report::{self, Failure, Outcome};
use stagewright::stop::Stop;
use stagewright::{child, presync};

const PROGRAM: &str = "stagewright-plan";
const EXAMPLE: &str = "To try it without any set-up:
  stagewright-plan --sandbox --repo PlatformDeploy --app-path headlamp --stage prd";

/// Show what the next sync of a stage would apply with Terraform; change nothing
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, after_help = EXAMPLE)]
struct Cli {
    #[command(flatten)]
    target: TargetArguments,
    /// What Terraform gets as var.namespace [default: from the registry]
    #[arg(long)]
    namespace: Option<Namespace>,
    /// The branch whose head is planned [default: the registry's targetRevision, else main]
    #[arg(long)]
    branch: Option<BranchName>,
    /// The commit to plan, which must be reachable from the branch [default: the branch's head]
    #[arg(long, alias = "sha")]
    revision: Option<CommitPrefix>,
    /// Write the log to FILE as well
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// End with code 3 when the plan carries changes
    #[arg(long)]
    fail_on_changes: bool,
    /// The build that asks for the plan, as an address for people; told in the Job that plans
    #[arg(long, value_name = "URL", env = "STAGEWRIGHT_BUILD_URL")]
    build_url: Option<String>,
    #[command(flatten)]
    shared: SharedArguments,
}

impl Cli {
    /// What clap cannot judge by one flag alone.
    fn checked(self) -> Result<(Target, Cli), clap::Error> {
        let others = [("--log", self.log.as_deref())];
        self.shared.distinct(&others, Cli::command())?;
        Ok((self.target.target(Cli::command())?, self))
    }
}

fn main() -> ExitCode {
    if let Some(code) = child::become_program() {
        return code;
    }
    if presync::is_called() {
        return presync::main();
    }
    match Cli::try_parse().and_then(Cli::checked) {
        Err(error) => report::arguments(&error),
        Ok((target, cli)) => {
            let on_changes = if cli.fail_on_changes {
                OnChanges::Refuse
            } else {
                OnChanges::Succeed
            };
            let wanted = Wanted {
                target,
                namespace: cli.namespace,
                branch: cli.branch,
                revision: cli.revision,
                build: cli.build_url.filter(|url| !url.is_empty()),
                log: cli.log,
                on_changes,
            };
            report::job(PROGRAM, run(&wanted, &cli.shared))
        }
    }
}

async fn run(wanted: &Wanted, shared: &SharedArguments) -> Result<Outcome, Failure> {
    let mut stop = Stop::listen().map_err(Failure::no_signals)?;
    shared.prepare_files()?;
    let planned = match shared.settings() {
        Ok(settings) => plan::run(wanted, &settings, &mut stop).await,
        Err(failure) => PlanReport::failed(wanted, failure),
    };
    planned.say(PROGRAM);
    shared.write_result(&planned.result())?;
    shared.write_report(|| planned.page())?;
    Ok(planned.outcome())
}
