//! `stagewright-destroy-stage`: destroy what a retired stage left, after making sure that nothing deploys it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use stagewright::arguments::{AllowanceArguments, SharedArguments, TargetArguments};
use stagewright::destroy_stage::{self, DestroyReport, PROGRAM, Step, Wanted};
use stagewright::names::{ApplicationName, Namespace};
use stagewright::report::{self, Failure, Outcome};
use stagewright::stop::Stop;
use stagewright::{child, presync};

const EXAMPLE: &str = "To try it without any set-up:
  stagewright-destroy-stage check --sandbox --repo FieldnotesDeploy --stage demo
  stagewright-destroy-stage preview --sandbox --repo FieldnotesDeploy --stage demo --namespace fieldnotes-demo";

/// Destroy what a retired stage left: nothing that is deployed, and nothing that was not shown
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, after_help = EXAMPLE)]
struct Cli {
    /// What to do
    #[arg(value_enum, default_value_t = Step::All)]
    step: Step,
    #[command(flatten)]
    target: TargetArguments,
    /// What Terraform gets as var.namespace, where the root wants one
    #[arg(long)]
    namespace: Option<Namespace>,
    /// An Application that is named as unproven and has nothing to do with the stage; may be given again
    #[arg(long, value_name = "NS/NAME")]
    not_deploying: Vec<ApplicationName>,
    #[command(flatten)]
    allowances: AllowanceArguments,
    /// Who asks for the destroy, for its record and commits [default: the build's address, else the user]
    #[arg(long, value_name = "WHO", env = "STAGEWRIGHT_REQUESTED_BY")]
    requested_by: Option<String>,
    /// Who approved the destroy, for its commits
    #[arg(long, value_name = "WHO", env = "STAGEWRIGHT_APPROVED_BY")]
    approved_by: Option<String>,
    /// Keep what a confirmation of the preview needs in FILE; destroy and remove-config take it from there
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The number of the build that asks
    #[arg(long, value_name = "N", env = "STAGEWRIGHT_BUILD")]
    build: Option<String>,
    /// Its address, for people
    #[arg(long, value_name = "URL", env = "STAGEWRIGHT_BUILD_URL")]
    build_url: Option<String>,
    #[command(flatten)]
    shared: SharedArguments,
}

impl Cli {
    fn wanted(&self) -> Result<Wanted, clap::Error> {
        let others = [("--record", self.record.as_deref())];
        self.shared.distinct(&others, Cli::command())?;
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let build = given(&self.build).map(|text| {
            text.parse().map_err(|_| {
                let text = format!("--build: {text:?} is no number");
                Cli::command().error(ErrorKind::ValueValidation, text)
            })
        });
        Ok(Wanted {
            target: self.target.target(Cli::command())?,
            namespace: self.namespace.clone(),
            not_deploying: self.not_deploying.clone(),
            build: build.transpose()?,
            build_url: given(&self.build_url),
            allowed: self.allowances.given(),
            record: self.record.clone(),
            requested_by: given(&self.requested_by),
            approved_by: given(&self.approved_by),
            settings_words: self.shared.settings_words(),
        })
    }
}

fn main() -> ExitCode {
    if let Some(code) = child::become_program() {
        return code;
    }
    if presync::is_called() {
        return presync::main();
    }
    match Cli::try_parse().and_then(|cli| Ok((cli.wanted()?, cli))) {
        Err(error) => report::arguments(&error),
        Ok((wanted, cli)) => report::job(PROGRAM, run(cli.step, &wanted, &cli.shared)),
    }
}

async fn run(step: Step, wanted: &Wanted, shared: &SharedArguments) -> Result<Outcome, Failure> {
    let mut stop = Stop::listen().map_err(Failure::no_signals)?;
    shared.prepare_files()?;
    let ended = match shared.settings() {
        Ok(settings) => destroy_stage::run(step, wanted, &settings, &mut stop).await,
        Err(failure) => DestroyReport::failed(step, wanted, failure),
    };
    ended.say(PROGRAM);
    shared.write_result(&ended.result())?;
    shared.write_report(|| ended.page())?;
    Ok(ended.outcome())
}
