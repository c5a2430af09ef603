//! Jenkins' jobs, their builds and what these archived; read only.

mod answer;
mod error;
mod folder;
mod http;

use crate::names::JobName;
use crate::settings::JenkinsSettings;

pub use error::JenkinsError;
use folder::FolderJenkins;
use http::HttpJenkins;

/// The most bytes of an artifact that are read.
const LARGEST_ARTIFACT: usize = 16 * 1024 * 1024;

/// Jenkins.
pub enum Jenkins {
    /// A server.
    Http(Box<HttpJenkins>),
    /// A folder that answers in its place.
    Folder(FolderJenkins),
}

/// A job as far as it matters for what it archives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The build from which others copy: the last one that is called successful, which an unstable one is as well
    /// (<https://javadoc.jenkins.io/hudson/model/Job.html#getLastSuccessfulBuild()>).
    pub last_successful: Option<Build>,
    /// The last one that has ended.
    pub last_completed: Option<Build>,
}

/// A build that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Its number.
    pub number: u64,
    /// How it ended, in Jenkins' word: `SUCCESS`, `UNSTABLE`, `FAILURE`, `NOT_BUILT`, `ABORTED`.
    pub result: String,
    /// Its address, for people.
    pub url: String,
    /// The paths of what it archived.
    pub artifacts: Vec<String>,
}

impl Build {
    /// Whether it ended well, and not merely unstable.
    pub fn is_green(&self) -> bool {
        self.result == "SUCCESS"
    }
}

impl Jenkins {
    /// The Jenkins of the settings.
    ///
    /// # Errors
    /// When the token cannot be had.
    pub fn open(settings: &JenkinsSettings) -> Result<Jenkins, JenkinsError> {
        match settings {
            JenkinsSettings::Http { url, access } => {
                let jenkins = HttpJenkins::open(url, access.as_ref())?;
                Ok(Jenkins::Http(Box::new(jenkins)))
            }
            JenkinsSettings::Folder(folder) => Ok(Jenkins::Folder(FolderJenkins {
                folder: folder.clone(),
            })),
        }
    }

    /// The job of this name.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub async fn job(&self, job: &JobName) -> Result<Job, JenkinsError> {
        match self {
            Jenkins::Http(jenkins) => jenkins.job(job).await,
            Jenkins::Folder(folder) => folder.job(job),
        }
    }

    /// What a build archived at this path; nothing where it is gone.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn artifact(
        &self,
        job: &JobName,
        build: &Build,
        path: &str,
    ) -> Result<Option<Vec<u8>>, JenkinsError> {
        match self {
            Jenkins::Http(jenkins) => jenkins.artifact(job, build, path).await,
            Jenkins::Folder(folder) => folder.artifact(job, build, path),
        }
    }
}
