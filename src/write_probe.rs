//! Trying every write of the forge `github` in a repository of the user's, on a scratch branch: the tests know a double alone.

use std::str::FromStr;

use crate::forge::ForgeError;
use crate::forge::github::{GitHubError, GitHubForge, Patience};
use crate::git::write::Author;
use crate::names::{NameError, OwnerName, RepoName};
use crate::report::{self, Failure, Outcome};
use crate::settings::{ForgeSettings, Settings};
use crate::stop::Stop;

/// A repository by both its names: `owner/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullName {
    owner: OwnerName,
    repo: RepoName,
}

/// What is no `owner/name`.
#[derive(Debug, thiserror::Error)]
pub enum FullNameError {
    /// It has no slash.
    #[error("{0:?} must be OWNER/REPO, such as example/Scratch")]
    NoSlash(String),
    /// One of the names is none.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl FromStr for FullName {
    type Err = FullNameError;

    fn from_str(text: &str) -> Result<FullName, FullNameError> {
        let names = text.split_once('/');
        let (owner, repo) = names.ok_or_else(|| FullNameError::NoSlash(text.to_owned()))?;
        Ok(FullName {
            owner: owner.parse()?,
            repo: repo.parse()?,
        })
    }
}

/// Why the writes could not be tried, or did not succeed.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    #[error("{} has no forge.github, and only GitHub is probed: set forge.github", file.display())]
    OtherForge { file: std::path::PathBuf },
    #[error("GitHub cannot be asked")]
    Open(#[source] GitHubError),
    #[error(transparent)]
    Forge(ForgeError),
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Failure {
        let outcome = match &error {
            ProbeError::OtherForge { .. } | ProbeError::Open(GitHubError::Token(_)) => {
                Outcome::Usage
            }
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
    name: &FullName,
    settings: &Settings,
    author: &Author,
    stop: &mut Stop,
) -> Result<Outcome, Failure> {
    let ForgeSettings::GitHub {
        url, api, access, ..
    } = &settings.forge
    else {
        let file = settings.file.clone();
        return Err(ProbeError::OtherForge { file }.into());
    };
    let forge = GitHubForge::new(name.owner.clone(), url, api, access, Patience::default());
    let forge = forge.map_err(ProbeError::Open)?;
    let tried = forge.write_probe(&name.repo, author, |done| report::note(done));
    tokio::select! {
        tried = tried => {
            tried.map_err(ProbeError::Forge)?;
            Ok(Outcome::Done)
        }
        signal = stop.next() => Ok(Outcome::of_stop(signal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_name_has_an_owner_and_a_name() {
        assert!("example/Scratch".parse::<FullName>().is_ok());
        for text in [
            "Scratch",
            "example/",
            "/Scratch",
            "a/b/c",
            "https://github.com/a/b",
        ] {
            assert!(text.parse::<FullName>().is_err(), "{text}");
        }
    }
}
