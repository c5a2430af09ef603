//! presync's environment: where the state is, how the estate is laid out, and what is secret.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::git::write::Author;
use crate::git::{Credentials, CredentialsError};
use crate::layout::{Layout, LayoutError};
use crate::names::{BranchName, NameError, Namespace, RepoUrl};
use crate::protect::{Protection, ProtectionError};
use crate::state_backend::recipients::{Recipients, RecipientsError};
use crate::transport::request::{
    APPROVED_BY, CONFIRMED, LAYOUT, MASK, NAMESPACE, NO_PREFIX, PROTECT, REQUESTED_BY,
    SAVE_PATIENCE, STATE_BRANCH, STATE_PREFIX, STATE_URL, TERMINATION_FILE, TERRAFORM,
};
use crate::transport::summary::Summary;

use super::provenance;

/// terraform-backend-git's names for the same things.
const TBG_URL: &str = "TF_BACKEND_GIT_GIT_REPOSITORY";
const TBG_BRANCH: &str = "TF_BACKEND_GIT_GIT_REF";
/// Where Kubernetes reads a container's termination message.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// Variables whose values are secret by what they are.
const SECRET: &[&str] = &["GIT_PASSWORD", "GITHUB_TOKEN", "SOPS_AGE_KEY"];
/// And by how they are named, in Terraform's variables and the providers' own.
const SECRET_WORDS: &[&str] = &["PASSWORD", "SECRET", "TOKEN", "PRIVATE_KEY", "PASSPHRASE"];

/// A variable that is missing or wrong.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// Neither name is set.
    #[error(
        "{STATE_URL} is not set: it names the state repository (terraform-backend-git's {TBG_URL} is understood as well)"
    )]
    NoStateUrl,
    /// A value that is not a name of its kind.
    #[error("the variable {variable} is wrong")]
    Name {
        /// The variable.
        variable: &'static str,
        /// Why.
        #[source]
        source: NameError,
    },
    /// Not an author.
    #[error("the variable {variable} is {value:?}, and \"Name <address>\" is expected")]
    Author {
        /// The variable.
        variable: &'static str,
        /// What it holds.
        value: String,
    },
    /// Not a number of seconds.
    #[error(
        "the variable {SAVE_PATIENCE} is {value:?}, and a number of seconds up to 86400 is expected"
    )]
    Seconds {
        /// What it holds.
        value: String,
    },
    /// The layout does not parse.
    #[error("the variable {LAYOUT} is wrong")]
    Layout(#[source] LayoutError),
    /// A pattern of what is protected does not parse.
    #[error("the variable {PROTECT} is wrong")]
    Protect(#[source] ProtectionError),
}

/// What presync was set up with.
#[derive(Debug)]
pub struct Environment {
    /// The state repository.
    pub state_url: RepoUrl,
    /// Its branch.
    pub state_branch: BranchName,
    /// The first folder of every key.
    pub state_prefix: String,
    /// Paths and names.
    pub layout: Layout,
    /// The program to run.
    pub terraform: Option<PathBuf>,
    /// What an apply may not destroy.
    pub protect: Protection,
    /// Who writes the states' commits.
    pub author: Author,
    /// How long a state that could not be written is tried for again.
    pub save_patience: Duration,
    /// The namespace of a stage that is destroyed.
    pub namespace: Option<Namespace>,
    /// Who asked for a destroy.
    pub requested_by: Option<String>,
    /// Who approved it.
    pub approved_by: Option<String>,
    /// What was confirmed, as the job packed it.
    pub confirmed: Option<String>,
}

impl Environment {
    /// Reads the variables; an empty one counts as absent.
    pub fn read() -> Result<Environment, EnvironmentError> {
        let url = variable(STATE_URL)
            .map(|v| (STATE_URL, v))
            .or_else(|| variable(TBG_URL).map(|v| (TBG_URL, v)));
        let (name, url) = url.ok_or(EnvironmentError::NoStateUrl)?;
        let branch = variable(STATE_BRANCH)
            .map(|v| (STATE_BRANCH, v))
            .or_else(|| variable(TBG_BRANCH).map(|v| (TBG_BRANCH, v)))
            .unwrap_or((STATE_BRANCH, "main".to_owned()));
        let layout = match variable(LAYOUT) {
            Some(json) => Layout::from_json(&json).map_err(EnvironmentError::Layout)?,
            None => Layout::default(),
        };
        Ok(Environment {
            state_url: named(name, &url)?,
            state_branch: named(branch.0, &branch.1)?,
            state_prefix: match variable(STATE_PREFIX) {
                None => "argocd".to_owned(),
                Some(prefix) if prefix == NO_PREFIX => String::new(),
                Some(prefix) => prefix,
            },
            layout,
            terraform: variable(TERRAFORM).map(PathBuf::from),
            protect: Protection::from_variable(&variable(PROTECT).unwrap_or_default())
                .map_err(EnvironmentError::Protect)?,
            author: provenance::author()?,
            requested_by: variable(REQUESTED_BY),
            approved_by: variable(APPROVED_BY),
            confirmed: confirmed(),
            namespace: variable(NAMESPACE)
                .map(|value| named(NAMESPACE, &value))
                .transpose()?,
            save_patience: match variable(SAVE_PATIENCE) {
                None => Duration::from_secs(60),
                Some(value) => match value.parse() {
                    Ok(seconds @ 0..=86_400) => Duration::from_secs(seconds),
                    _ => return Err(EnvironmentError::Seconds { value }),
                },
            },
        })
    }

    /// What git needs for the deploy repository and the state repository.
    pub fn credentials(&self) -> Result<Option<Credentials>, CredentialsError> {
        Credentials::from_environment()
    }

    /// For whom states are sealed; `None`: they are kept plain.
    pub fn recipients(&self) -> Result<Option<Recipients>, RecipientsError> {
        Recipients::from_environment()
    }

    /// The values of every variable that is secret: by what it is, by its name, or because STAGEWRIGHT_MASK names it.
    pub fn secrets(&self) -> Vec<String> {
        let named = variable(MASK).unwrap_or_default();
        let named: Vec<&str> = named.split(',').map(str::trim).collect();
        let mut secrets: Vec<String> = std::env::vars_os()
            .filter(|(name, _)| {
                let name = name.to_string_lossy();
                let upper = name.to_uppercase();
                !upper.ends_with("_FILE")
                    && (SECRET.contains(&name.as_ref())
                        || named.contains(&name.as_ref())
                        || SECRET_WORDS.iter().any(|word| upper.contains(word)))
            })
            .map(|(_, value)| value.to_string_lossy().into_owned())
            .collect();
        if let Ok(Some(credentials)) = self.credentials() {
            secrets.push(credentials.password);
        }
        secrets
    }
}

/// Writes the termination summary where it is read: the named file, else the pod's, else nowhere.
pub fn write_summary(summary: &Summary) -> io::Result<()> {
    let file = variable(TERMINATION_FILE).map(PathBuf::from).or_else(|| {
        let file = PathBuf::from(TERMINATION_LOG);
        file.exists().then_some(file)
    });
    match file {
        // Opened without truncation or creation of a new kind of file: it may be a pipe.
        Some(file) => {
            use std::io::Write as _;
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(file)?;
            file.write_all(format!("{}\n", summary.to_line()).as_bytes())
        }
        None => Ok(()),
    }
}

/// The pieces of what was confirmed, joined.
fn confirmed() -> Option<String> {
    let pieces: Vec<String> = CONFIRMED.into_iter().map_while(variable).collect();
    (!pieces.is_empty()).then(|| pieces.concat())
}

/// The variable's value; an empty one counts as absent.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn named<T: std::str::FromStr<Err = NameError>>(
    variable: &'static str,
    value: &str,
) -> Result<T, EnvironmentError> {
    value
        .parse()
        .map_err(|source| EnvironmentError::Name { variable, source })
}
