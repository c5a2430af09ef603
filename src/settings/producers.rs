//! Where the producers of architecture are registered.

use crate::names::{BranchName, RepoName};

use super::file;

/// Where the producers of architecture are registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducersSettings {
    /// The repository.
    pub repo: RepoName,
    /// The branch; `main` when not set.
    pub branch: BranchName,
    /// The file in it; `pipeline-producers.yaml` when not set.
    pub file: String,
    /// The key at the top of an artifact that holds its producer's id; `producer` when not set.
    pub id_key: String,
}

impl From<file::Producers> for ProducersSettings {
    fn from(raw: file::Producers) -> ProducersSettings {
        ProducersSettings {
            repo: raw.repo,
            branch: raw.branch,
            file: raw.file,
            id_key: raw.id_key,
        }
    }
}
