//! Trying every write of the forge `github` in a repository of the user's, on a scratch branch: the tests know a double alone.

use crate::forge::ForgeError;
use crate::forge::github::{GitHubError, GitHubForge, Patience};
use crate::names::OwnedRepo;
use crate::presync::environment::EnvironmentError;
use crate::presync::provenance::commit_author;
use crate::report::{self, Failure, Outcome};
use crate::settings::{ForgeSettings, Settings};
use crate::stop::Stop;

/// Why the writes could not be tried, or did not succeed.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    #[error("{} has no forge.github, and only GitHub is probed: set forge.github", file.display())]
    OtherForge { file: std::path::PathBuf },
    #[error("GitHub cannot be asked")]
    Open(#[source] GitHubError),
    #[error(transparent)]
    Forge(ForgeError),
    #[error("it is not known who the commits would be by")]
    Author(#[source] EnvironmentError),
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Failure {
        let outcome = match &error {
            ProbeError::OtherForge { .. }
            | ProbeError::Open(GitHubError::Token(_))
            | ProbeError::Author(_) => Outcome::Usage,
            ProbeError::Forge(error) if error.is_passing() => Outcome::Later,
            ProbeError::Open(_) | ProbeError::Forge(_) => Outcome::Failed,
        };
        Failure::new(outcome, error)
    }
}

/// Tries the writes with the address and the token of the settings, and says each on standard error. What a stop or a kill leaves is a branch
/// whose name begins with `stagewright-write-probe-`.
///
/// # Errors
/// When the settings have another forge, or GitHub does not do what the forge needs.
pub async fn probe(
    repo: &OwnedRepo,
    settings: &Settings,
    stop: &mut Stop,
) -> Result<Outcome, Failure> {
    let ForgeSettings::GitHub {
        url, api, access, ..
    } = &settings.forge
    else {
        let file = settings.file.clone();
        return Err(ProbeError::OtherForge { file }.into());
    };
    let author = commit_author().map_err(ProbeError::Author)?;
    let forge = GitHubForge::new(repo.owner().clone(), url, api, access, Patience::default());
    let forge = forge.map_err(ProbeError::Open)?;
    let tried = forge.write_probe(repo.name(), &author, |done| report::note(done));
    tokio::select! {
        tried = tried => {
            tried.map_err(ProbeError::Forge)?;
            Ok(Outcome::Done)
        }
        signal = stop.next() => Ok(Outcome::of_stop(signal)),
    }
}
