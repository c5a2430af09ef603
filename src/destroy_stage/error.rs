//! Why a stage could not be destroyed, and what that means for the exit code.

use crate::estate::EstateError;
use crate::estate::live::LiveError;
use crate::forge::ForgeError;
use crate::guard::{Asker, Refusal};
use crate::names::{RepoName, nearest};
use crate::presync::environment::EnvironmentError;
use crate::preview::objections::Objection;
use crate::report::{Failure, Outcome, OutputError};
use crate::runner::RunnerError;
use crate::transport::record;

use super::record::RecordError;

/// Why a stage could not be destroyed.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each variant is one room's error, documented there, or one sentence"
)]
pub enum DestroyError {
    #[error(transparent)]
    Estate(#[from] EstateError),
    #[error("{place} has no repo {repo}: name the deploy repo as it is spelled there{}", for_example(.near))]
    NoRepository {
        place: String,
        repo: RepoName,
        near: Vec<String>,
    },
    #[error(
        "{place} spells {given} as {canonical}, the spelling the stage's state is filed under: run with {parameter}{canonical}"
    )]
    OtherSpelling {
        place: String,
        given: RepoName,
        canonical: RepoName,
        parameter: &'static str,
    },
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Runner(RunnerError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("the preview could not be shown")]
    Show(#[source] std::io::Error),
    #[error("presync ended well and left no record of what it found")]
    NoRecord,
    #[error(
        "the record that presync left is of another stage, commit or version than was asked for"
    )]
    OtherRecord,
    #[error("{}", sentences(.0))]
    Objected(Vec<Objection>),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the step {step} needs the record of a preview: --record FILE")]
    NeedsRecord { step: &'static str },
    #[error("moved since the preview, so nothing was changed: {} in the deploy repository is another than was previewed; preview again", .folders.join(", "))]
    Moved { folders: Vec<String> },
    #[error(
        "others wrote to the deploy repository each time that the config folder was to be removed: try again later"
    )]
    Contended,
    #[error("what was confirmed could not be handed on")]
    Pack(#[source] record::RecordError),
    #[error(
        "what was confirmed is too large to be handed on: destroy a part of it first, by presync backend KEY -- terraform destroy -target=…, and preview again"
    )]
    TooLarge,
    #[error("the author of the commit is wrong")]
    Author(#[source] EnvironmentError),
    #[error("Not confirmed: nothing was destroyed.")]
    NotConfirmed,
}

/// One sentence after the other.
fn sentences(objections: &[Objection]) -> String {
    let sentences: Vec<String> = objections.iter().map(ToString::to_string).collect();
    sentences.join("; and ")
}

fn for_example(near: &[String]) -> String {
    match near.first() {
        Some(name) => format!(", e.g. {name}"),
        None => String::new(),
    }
}

impl DestroyError {
    /// The target's repository, in the words of this job.
    pub(super) fn of_target(error: ForgeError, asker: Asker) -> DestroyError {
        match error {
            ForgeError::NoRepository { place, repo, names } => DestroyError::NoRepository {
                near: nearest(repo.as_str(), names.iter().map(ToString::to_string)),
                place,
                repo,
            },
            ForgeError::OtherSpelling {
                place,
                given,
                canonical,
            } => DestroyError::OtherSpelling {
                place,
                given,
                canonical,
                parameter: match asker {
                    Asker::Build => "REPO=",
                    Asker::Person => "--repo ",
                },
            },
            other => EstateError::Forge(other).into(),
        }
    }

    /// What it means for the exit code.
    fn outcome(&self) -> Outcome {
        match self {
            DestroyError::Estate(error) => error.outcome(),
            DestroyError::Live(error) => error.outcome(),
            DestroyError::Runner(error) => error.outcome(),
            DestroyError::NoRepository { .. }
            | DestroyError::OtherSpelling { .. }
            | DestroyError::Objected(_)
            | DestroyError::Record(
                RecordError::Digest | RecordError::OtherTarget { .. } | RecordError::NotDone,
            )
            | DestroyError::Refused(Refusal::Deployed(_)) => Outcome::Refused,
            DestroyError::Refused(Refusal::NotUnproven { .. }) => Outcome::Usage,
            DestroyError::Moved { .. }
            | DestroyError::Record(RecordError::Expired { .. } | RecordError::Stale { .. }) => {
                Outcome::Moved
            }
            DestroyError::Contended => Outcome::Later,
            DestroyError::NotConfirmed => Outcome::NotConfirmed,
            DestroyError::NeedsRecord { .. }
            | DestroyError::Author(_)
            | DestroyError::Record(RecordError::Content { .. }) => Outcome::Usage,
            DestroyError::Record(RecordError::Read { .. })
            | DestroyError::Pack(_)
            | DestroyError::TooLarge
            | DestroyError::Output(_)
            | DestroyError::Show(_)
            | DestroyError::NoRecord
            | DestroyError::OtherRecord
            | DestroyError::Refused(Refusal::Hidden { .. }) => Outcome::Failed,
        }
    }
}

impl From<ForgeError> for DestroyError {
    fn from(error: ForgeError) -> DestroyError {
        DestroyError::Estate(error.into())
    }
}

impl From<DestroyError> for Failure {
    fn from(error: DestroyError) -> Failure {
        Failure::new(error.outcome(), error)
    }
}
