//! `stagewright-registry-check`: what is wrong with the registry.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use stagewright::arguments::SharedArguments;
use stagewright::child;
use stagewright::findings::{Format, Severity};
use stagewright::registry_check::{self, PROGRAM, Reach, Source};
use stagewright::report::{self, Failure, Outcome};

const EXAMPLE: &str = "To try it without any set-up:
  stagewright-registry-check --sandbox";

/// Check the registry: its file, and whether what it promises is what there is
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, after_help = EXAMPLE)]
struct Cli {
    /// The registry's file [default: the one in the repository that the settings name]
    file: Option<PathBuf>,
    /// Check the file alone, and ask neither repositories nor a cluster
    #[arg(long)]
    offline: bool,
    /// How findings are written to standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// What a finding must weigh to end the program with code 3
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = Severity::Error)]
    fail_on: Severity,
    /// Say what a check is about, and check nothing
    #[arg(long, value_name = "CHECK", conflicts_with = "file")]
    explain: Option<String>,
    #[command(flatten)]
    shared: SharedArguments,
}

impl Cli {
    /// A file is checked without settings, unless some are named.
    fn source(&self) -> Result<Source, Failure> {
        let named = self.shared.settings.is_some() || self.shared.sandbox.is_some();
        match &self.file {
            Some(file) if !named => Ok(Source::File(file.clone(), None)),
            Some(file) => {
                let settings = Box::new(self.shared.settings()?);
                Ok(Source::File(file.clone(), Some(settings)))
            }
            None => Ok(Source::Repository(Box::new(self.shared.settings()?))),
        }
    }
}

fn main() -> ExitCode {
    if let Some(code) = child::become_program() {
        return code;
    }
    match Cli::try_parse() {
        Err(error) => report::arguments(&error),
        Ok(cli) => report::job(PROGRAM, run(cli)),
    }
}

async fn run(cli: Cli) -> Result<Outcome, Failure> {
    if let Some(name) = &cli.explain {
        return registry_check::explain(name);
    }
    cli.shared.prepare_files()?;
    let reach = match cli.offline {
        true => Reach::FileAlone,
        false => Reach::Estate,
    };
    let checked = registry_check::run(cli.source(), reach, cli.format, cli.fail_on).await;
    checked.say();
    cli.shared.write_result(&checked.result())?;
    cli.shared.write_report(|| checked.page())?;
    Ok(checked.outcome())
}
