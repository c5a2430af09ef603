//! The flags that all jobs share, and how settings are found with them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Args, Command};
use serde::Serialize;

use crate::names::{AppPath, NameError, RepoName, StageName, Target};
use crate::page::{Page, ReportFile};
use crate::preview::objections::Allowance;
use crate::report::{self, Failure, Outcome};
use crate::sandbox::{Reset, Sandbox, SandboxError};
use crate::settings::{
    ApplicationsSettings, RunnerSettings, Settings, SettingsError, SettingsOrigin,
};

/// The variable that names the settings file.
pub const SETTINGS_VARIABLE: &str = "STAGEWRIGHT_SETTINGS";
/// The settings file that is looked for in the working folder.
const SETTINGS_FILE: &str = "stagewright.yaml";
/// Where the sandbox is unpacked when no folder is named.
const SANDBOX_FOLDER: &str = "./stagewright-sandbox";

/// Flags of every job.
#[derive(Debug, Args)]
pub struct SharedArguments {
    /// The settings file [default: $STAGEWRIGHT_SETTINGS, else stagewright.yaml in the working folder]
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,

    /// Work in an example estate with real git and real Terraform, unpacked into DIR; no cluster, no accounts
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true,
          default_missing_value = SANDBOX_FOLDER, conflicts_with = "settings")]
    pub sandbox: Option<PathBuf>,

    /// Unpack the sandbox anew, dropping what was done in it
    #[arg(long, requires = "sandbox")]
    pub sandbox_reset: bool,

    /// The context of the kubeconfig to work in, instead of that of the settings
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Write the outcome to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,

    /// Write a report for people to FILE, as one HTML page or as Markdown by its name's end: .html, .md
    #[arg(long, value_name = "FILE")]
    pub report: Option<ReportFile>,

    /// Show what is done underneath, on standard error
    #[arg(short, long)]
    pub verbose: bool,
}

/// What the caller of a destroy takes upon himself.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub struct AllowanceArguments {
    /// Go on although the provider finds nothing of what the state lists
    #[arg(long)]
    accept_gone: bool,
    /// Go on without a state, where none was found and nothing proves that there was one
    #[arg(long)]
    accept_no_state: bool,
    /// Go on although destroy-time provisioners do not run
    #[arg(long)]
    skip_destroy_provisioners: bool,
    /// Leave forgotten objects in a namespace that still lives
    #[arg(long)]
    leave_behind: bool,
}

impl AllowanceArguments {
    /// Those that were given.
    pub fn given(&self) -> BTreeSet<Allowance> {
        let all = [
            (self.accept_gone, Allowance::AcceptGone),
            (self.accept_no_state, Allowance::AcceptNoState),
            (
                self.skip_destroy_provisioners,
                Allowance::SkipDestroyProvisioners,
            ),
            (self.leave_behind, Allowance::LeaveBehind),
        ];
        all.into_iter()
            .filter_map(|(given, allowance)| given.then_some(allowance))
            .collect()
    }
}

/// The settings could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentsError {
    /// The sandbox could not be opened.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A context, where no cluster is asked.
    #[error(
        "--context names a cluster, and the settings ask none that it could stand for: leave it out, or set runner.kubernetes"
    )]
    Context,
    /// The settings could not be read.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

impl From<ArgumentsError> for Failure {
    fn from(error: ArgumentsError) -> Failure {
        let outcome = match &error {
            ArgumentsError::Sandbox(SandboxError::Io { .. } | SandboxError::Git { .. }) => {
                Outcome::Failed
            }
            // The folder that was named, or the file: the command line or the settings are wrong.
            ArgumentsError::Sandbox(_) | ArgumentsError::Settings(_) | ArgumentsError::Context => {
                Outcome::Usage
            }
        };
        Failure::new(outcome, error)
    }
}

impl SharedArguments {
    /// Finds and reads the settings, unpacks the sandbox where one is asked for, and says on standard error where they
    /// came from.
    pub fn settings(&self) -> Result<Settings, Failure> {
        if self.verbose {
            report::verbose();
        }
        let (mut settings, from) = self.find()?;
        if let Some(context) = &self.context
            && !use_context(context, &mut settings)
        {
            return Err(ArgumentsError::Context.into());
        }
        report::heading(
            "settings",
            format_args!("{} ({from})", settings.file.display()),
        );
        Ok(settings)
    }

    /// The flags by which the same settings are named again.
    pub fn settings_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(folder) = &self.sandbox {
            words.push(match folder.to_str() {
                Some(SANDBOX_FOLDER) => "--sandbox".to_owned(),
                _ => format!("--sandbox={}", folder.display()),
            });
        }
        if let Some(file) = &self.settings {
            words.extend(["--settings".to_owned(), file.display().to_string()]);
        }
        if let Some(context) = &self.context {
            words.extend(["--context".to_owned(), context.clone()]);
        }
        words
    }

    fn find(&self) -> Result<(Settings, &'static str), ArgumentsError> {
        if let Some(folder) = &self.sandbox {
            let reset = if self.sandbox_reset {
                Reset::Fresh
            } else {
                Reset::Keep
            };
            let sandbox = Sandbox::open(folder, reset)?;
            let settings = Settings::load(&sandbox.settings_file(), SettingsOrigin::Sandbox)?;
            return Ok((settings, "the sandbox's"));
        }
        if let Some(file) = &self.settings {
            return Ok((
                Settings::load(file, SettingsOrigin::Flag)?,
                "from --settings",
            ));
        }
        let named = std::env::var_os(SETTINGS_VARIABLE).filter(|file| !file.is_empty());
        if let Some(file) = named {
            let settings = Settings::load(file.as_ref(), SettingsOrigin::Environment)?;
            return Ok((settings, "from $STAGEWRIGHT_SETTINGS"));
        }
        let settings = Settings::load(SETTINGS_FILE.as_ref(), SettingsOrigin::WorkingFolder)?;
        Ok((settings, "found in the working folder"))
    }

    /// Refuses two flags that name the same file, `others` being those of the job itself; `command` words the error.
    pub fn distinct(
        &self,
        others: &[(&str, Option<&Path>)],
        mut command: Command,
    ) -> Result<(), clap::Error> {
        let report = self.report.as_ref().map(ReportFile::path);
        let own = [("--result", self.result.as_deref()), ("--report", report)];
        let named: Vec<_> = others.iter().copied().chain(own).collect();
        for (at, (flag, file)) in named.iter().enumerate() {
            let before = named.iter().take(at);
            let mut same = before.filter(|(_, other)| file.is_some() && other == file);
            if let Some((other, _)) = same.next_back() {
                let text = format!("{other} and {flag} name the same file");
                return Err(command.error(ErrorKind::ArgumentConflict, text));
            }
        }
        Ok(())
    }

    /// Looks whether the result and the report can be written, before anything is started: a wrong path then costs no run.
    pub fn prepare_files(&self) -> Result<(), Failure> {
        let report = self.report.as_ref().map(ReportFile::path);
        for file in self.result.as_deref().into_iter().chain(report) {
            report::prepare_result(file).map_err(|error| Failure::new(Outcome::Failed, error))?;
        }
        Ok(())
    }

    /// Writes the report where one was asked for.
    pub fn write_report(&self, page: impl FnOnce() -> Page) -> Result<(), Failure> {
        match &self.report {
            None => Ok(()),
            Some(file) => report::write_whole(file.path(), file.show(&page()).as_bytes())
                .map_err(|error| Failure::new(Outcome::Failed, error)),
        }
    }

    /// Writes the result file where one was asked for.
    pub fn write_result(&self, result: &impl Serialize) -> Result<(), Failure> {
        match &self.result {
            None => Ok(()),
            Some(file) => report::write_result(file, result)
                .map_err(|error| Failure::new(Outcome::Failed, error)),
        }
    }
}

/// Works in this context, where the settings name a cluster: the runner's, and every Argo CD's without a context of its own.
fn use_context(context: &str, settings: &mut Settings) -> bool {
    let mut used = false;
    if let RunnerSettings::Kubernetes(kubernetes) = &mut settings.runner {
        kubernetes.context = Some(context.to_owned());
        used = true;
    }
    if let Some(ApplicationsSettings::Instances(instances)) = &mut settings.applications {
        for instance in instances.iter_mut().filter(|i| i.context.is_none()) {
            instance.context = Some(context.to_owned());
            used = true;
        }
    }
    used
}

/// Which stage a job works on. Each is also read from the variable by which a pipeline hands it over; an empty value,
/// there or here, counts as absent.
#[derive(Debug, Args)]
pub struct TargetArguments {
    /// The deploy repository, spelled as the forge spells it [default: $REPO]
    #[arg(long)]
    repo: Option<String>,
    /// The app's folder in a monorepo; none for a repository of one app [default: $APP_PATH]
    #[arg(long, alias = "path", value_name = "PATH")]
    app_path: Option<String>,
    /// The stage [default: $STAGE]
    #[arg(long)]
    stage: Option<String>,
}

impl TargetArguments {
    /// The stage that is meant; `command` words the errors.
    pub fn target(&self, mut command: Command) -> Result<Target, clap::Error> {
        let repo = value(&mut command, "--repo", "REPO", self.repo.as_deref())?;
        let path = value::<AppPath>(
            &mut command,
            "--app-path",
            "APP_PATH",
            self.app_path.as_deref(),
        )?;
        let stage = value(&mut command, "--stage", "STAGE", self.stage.as_deref())?;
        let mut missing = |flag: &str, variable: &str| {
            let text = format!("{flag} is missing, and ${variable} is not set");
            command.error(ErrorKind::MissingRequiredArgument, text)
        };
        let repo: RepoName = repo.ok_or_else(|| missing("--repo", "REPO"))?;
        let stage: StageName = stage.ok_or_else(|| missing("--stage", "STAGE"))?;
        Ok(Target { repo, path, stage })
    }
}

fn value<T: std::str::FromStr<Err = NameError>>(
    command: &mut Command,
    flag: &str,
    variable: &str,
    given: Option<&str>,
) -> Result<Option<T>, clap::Error> {
    let given = given.map(str::to_owned).map(|text| (text, flag.to_owned()));
    let from_variable = || {
        let text = std::env::var(variable).ok()?;
        Some((text, format!("${variable}")))
    };
    match given
        .or_else(from_variable)
        .filter(|(text, _)| !text.is_empty())
    {
        None => Ok(None),
        Some((text, from)) => text.parse().map(Some).map_err(|error: NameError| {
            command.error(ErrorKind::ValueValidation, format!("{from}: {error}"))
        }),
    }
}
