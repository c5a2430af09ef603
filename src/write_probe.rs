//! Trying every write of the forge `github` in a repository of the user's, on a scratch branch: the tests know a double alone.

use tokio::time::Instant;

use crate::forge::ForgeError;
use crate::forge::github::{GitHubError, GitHubForge, Patience, Probe, Scratch};
use crate::names::OwnedRepo;
use crate::presync::environment::EnvironmentError;
use crate::presync::provenance::commit_author;
use crate::report::{self, Failure, Outcome};
use crate::settings::{ForgeSettings, Settings};
use crate::stop::{self, Stop, StopSignal};

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

/// Tries the writes with the address and the token of the settings, and says each on standard error. However that ends, and when it is
/// stopped as well, the scratch branch goes; one that stays all the same is named.
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
    let say = |done: &str| report::note(done);
    let probe = tokio::select! {
        prepared = forge.prepare_probe(repo.name(), say) => prepared.map_err(ProbeError::Forge)?,
        signal = stop.next() => return Ok(Outcome::of_stop(signal)),
    };
    let (tried, stopped) = tokio::select! {
        tried = forge.write_probe(&probe, &author, say) => (tried, None),
        signal = stop.next() => (Ok(()), Some((signal, Instant::now()))),
    };
    let removed = remove(&forge, &probe, stopped.map(|(_, at)| at), stop).await;
    tried.map_err(ProbeError::Forge)?;
    let second = removed.map_err(ProbeError::Forge)?;
    let signal = stopped.map(|(signal, _)| signal).or(second);
    Ok(signal.map_or(Outcome::Done, Outcome::of_stop))
}

/// Removes the scratch branch, and says what became of it. A stop (after `first`: a second one) ends that, and is what comes back.
async fn remove(
    forge: &GitHubForge,
    probe: &Probe,
    first: Option<Instant>,
    stop: &mut Stop,
) -> Result<Option<StopSignal>, ForgeError> {
    let branch = probe.branch();
    let ended = forge.end_probe(probe);
    tokio::pin!(ended);
    let removed = loop {
        tokio::select! {
            ended = &mut ended => break ended.map(Ok),
            signal = stop.next() => {
                if first.is_none_or(|first| stop::is_second(first, Instant::now())) {
                    break Ok(Err(signal));
                }
            }
        }
    };
    match &removed {
        Ok(Ok(Scratch::Removed)) => report::note(format_args!("removed the branch {branch}")),
        Ok(Ok(Scratch::NeverMade)) => {}
        Ok(Err(_)) | Err(_) => report::note(format_args!(
            "the branch {branch} may be there still: remove it, or let a probe do so that is begun in an hour or later"
        )),
    }
    Ok(removed?.err())
}
