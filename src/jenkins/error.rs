//! What can go wrong with Jenkins.

use std::path::PathBuf;

use reqwest::StatusCode;

use crate::names::JobName;
use crate::web::Distrust;

/// Something of Jenkins that could not be read, or that it does not have.
#[derive(Debug, thiserror::Error)]
pub enum JenkinsError {
    /// The user's token is not there.
    #[error(
        "the variable {variable} holds no API token of Jenkins: set it, or name another one by jenkins.token_env"
    )]
    NoVariable {
        /// The variable.
        variable: String,
    },
    /// The file with the user's token cannot be read.
    #[error("the API token of Jenkins in {} could not be read", file.display())]
    TokenFile {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// What the file holds is no token.
    #[error("{} holds no API token of Jenkins: one line without blanks is wanted", file.display())]
    NoToken {
        /// The file.
        file: PathBuf,
    },
    /// What answers there cannot prove that it is Jenkins.
    #[error(transparent)]
    Distrusted(#[from] Distrust),
    /// There is no client.
    #[error("Jenkins cannot be asked")]
    Client(#[source] reqwest::Error),
    /// There is no such job, or the user may not know of it.
    #[error(
        "{place} has no job {job} that {who} may see: create it, correct --jenkins-job, or grant Job/Read on it"
    )]
    NoJob {
        /// Jenkins' address.
        place: String,
        /// The job.
        job: JobName,
        /// Who asked.
        who: String,
    },
    /// The job is spelled otherwise: Jenkins finds it all the same, and others may not.
    #[error("{place} spells the job {given} as {canonical}: write it so")]
    OtherSpelling {
        /// Jenkins' address.
        place: String,
        /// As it was given.
        given: JobName,
        /// As it is.
        canonical: String,
    },
    /// It is a folder, or something else without builds.
    #[error(
        "{job} at {place} is no job that builds ({class}): name a job in it, as <folder>/<job>"
    )]
    NotAJob {
        /// Jenkins' address.
        place: String,
        /// What was named.
        job: JobName,
        /// Jenkins' word for what it is.
        class: String,
    },
    /// The token or its user is not accepted.
    #[error(
        "{place} does not accept the API token of {who}: make a new one, or correct jenkins.user"
    )]
    NotAccepted {
        /// Jenkins' address.
        place: String,
        /// Who asked.
        who: String,
    },
    /// It wants a login first.
    #[error(
        "{place} asks to log in, so {who} was not let in: set jenkins.user and its API token, not a password"
    )]
    NotLoggedIn {
        /// Jenkins' address.
        place: String,
        /// Who asked.
        who: String,
    },
    /// The user has no right to it.
    #[error("{place} refuses {what} to {who}: grant Overall/Read and Job/Read")]
    Forbidden {
        /// Jenkins' address.
        place: String,
        /// What was asked for.
        what: String,
        /// Who asked.
        who: String,
    },
    /// It is elsewhere.
    #[error(
        "{place} sends us to {to} for {what}: set jenkins.url to the address of Jenkins itself"
    )]
    Elsewhere {
        /// Jenkins' address.
        place: String,
        /// Where it sends us.
        to: String,
        /// What was asked for.
        what: String,
    },
    /// An answer that is none of Jenkins' API.
    #[error(
        "the answer of {place} to {what} is not that of Jenkins ({found}): see whether jenkins.url leads to Jenkins itself"
    )]
    NotJenkins {
        /// Jenkins' address.
        place: String,
        /// What was asked for.
        what: String,
        /// What came.
        found: String,
    },
    /// An answer that is larger than is read.
    #[error("the answer of {place} to {what} is larger than {most} bytes, more than is read")]
    TooLarge {
        /// Jenkins' address.
        place: String,
        /// What was asked for.
        what: String,
        /// The bound.
        most: usize,
    },
    /// A fault of the server.
    #[error("{place} answered {what} with {status}, {tries} times: try again later")]
    Status {
        /// Jenkins' address.
        place: String,
        /// What was asked for.
        what: String,
        /// The status.
        status: StatusCode,
        /// How often it was asked.
        tries: u32,
    },
    /// No answer, or half of one.
    #[error("{place} gave no whole answer to {what}, {tries} times")]
    NoAnswer {
        /// Jenkins' address.
        place: String,
        /// What was asked for.
        what: String,
        /// How often it was asked.
        tries: u32,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// A file of the folder that answers as Jenkins.
    #[error("{} could not be read", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl JenkinsError {
    /// Whether the same may succeed later, with nothing changed.
    pub fn is_passing(&self) -> bool {
        match self {
            JenkinsError::Status { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            JenkinsError::NoAnswer { .. } => true,
            _ => false,
        }
    }

    /// Whether Jenkins was read, and does not have the job, or has it under another name.
    pub fn is_about_the_job(&self) -> bool {
        matches!(
            self,
            JenkinsError::NoJob { .. }
                | JenkinsError::OtherSpelling { .. }
                | JenkinsError::NotAJob { .. }
        )
    }

    /// Whether the settings or what they name is wrong.
    pub fn is_about_the_settings(&self) -> bool {
        matches!(
            self,
            JenkinsError::NoVariable { .. }
                | JenkinsError::TokenFile { .. }
                | JenkinsError::NoToken { .. }
        )
    }
}
