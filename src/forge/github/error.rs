//! What can go wrong between us and GitHub.

use std::path::PathBuf;

use http::StatusCode;

use crate::web::Distrust;

/// Why GitHub did not do, or could not be asked for, what was wanted. What would lift it stands in the sentence.
#[derive(Debug, thiserror::Error)]
pub enum GitHubError {
    /// The client could not be made.
    #[error("no client for {api} could be made")]
    Client {
        /// The address of the API.
        api: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What answers there cannot prove that it is GitHub.
    #[error(transparent)]
    Distrusted(#[from] Distrust),
    /// There is no token where the settings say that it is.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token is not taken.
    #[error(
        "GitHub takes the token for nobody's: it is wrong, expired or revoked; hand over another one"
    )]
    Unauthorized(#[source] Said),
    /// The organization wants single sign-on first.
    #[error(
        "the organization demands single sign-on, and the token is not authorized for it: authorize it{}",
        .at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default()
    )]
    SingleSignOn {
        /// Where that is done, as GitHub says.
        at: Option<String>,
    },
    /// GitHub limits how much may be asked, and that lasts longer than we wait.
    #[error(
        "GitHub's rate limit holds for {} s more, and no more than {} s are waited: try again later",
        .wait.as_secs(),
        .bound.as_secs()
    )]
    Limited {
        /// How long it would have to be waited.
        wait: std::time::Duration,
        /// How long is waited in all.
        bound: std::time::Duration,
        /// GitHub's words.
        #[source]
        said: Said,
    },
    /// No answer of use, several times.
    #[error("GitHub gave no answer to {request} in {tries} tries: try again later")]
    Unanswered {
        /// Method and path.
        request: String,
        /// How often it was tried.
        tries: u32,
        /// The last of it.
        #[source]
        source: Unanswered,
    },
    /// A folder's listing was cut off.
    #[error(
        "GitHub cuts off the listing of {folder}, which has too many entries: what is not in it cannot be told from what was cut off"
    )]
    Truncated {
        /// The folder.
        folder: String,
    },
    /// More than is read.
    #[error("{what} holds more than {most} {holds}, and so many are not read")]
    TooLarge {
        /// A folder or a list.
        what: String,
        /// What there is too much of.
        holds: &'static str,
        /// How many are read.
        most: usize,
    },
    /// The next page is somewhere else.
    #[error(
        "GitHub's answer to {request} goes on at {to}, which does not lie below forge.github.api: set that to the address by which GitHub knows itself"
    )]
    Elsewhere {
        /// Method and path.
        request: String,
        /// Where it goes on.
        to: String,
    },
    /// What GitHub lists, or made, is not what its id says.
    #[error(
        "{what} is not what its id says, so nothing was changed on the branch: make this change with git"
    )]
    NotProven {
        /// The tree or blob.
        what: String,
    },
    /// The repository has another name now.
    #[error(
        "it is now {to}: write the new name in the registry, the settings and the command, and move the states that are filed under the old one"
    )]
    Renamed {
        /// The new `owner/name`, or its address.
        to: String,
    },
    /// Nothing can be written to it any more.
    #[error("it is {how}, and so only readable: lift that in the repository's settings")]
    ReadOnly {
        /// `archived` or `disabled`.
        how: &'static str,
    },
    /// The token's owner may not write, or the token may not.
    #[error("the token may not do this{}", lacking(.needs.as_deref()))]
    Forbidden {
        /// What the token lacks, as far as GitHub tells.
        needs: Option<String>,
        /// GitHub's words.
        #[source]
        said: Said,
    },
    /// Not there, or hidden from this token: GitHub says the same of both.
    #[error(
        "GitHub has no such thing, or does not show it to this token: see whether it is there, and whether the token may use the repository (Contents: read and write)"
    )]
    NotFound(#[source] Said),
    /// The branch is protected.
    #[error(
        "the branch {branch} is protected against direct commits: let the token's account bypass that, or make the change by a pull request"
    )]
    Protected {
        /// The branch.
        branch: String,
        /// What it demands.
        #[source]
        said: Said,
    },
    /// A ruleset forbids it.
    #[error(
        "a ruleset of the repository or its organization forbids direct commits to {branch}: put the token's account or App on its bypass list, or make the change by a pull request"
    )]
    Rules {
        /// The branch.
        branch: String,
        /// What it demands.
        #[source]
        said: Said,
    },
    /// Only signed commits are taken.
    #[error(
        "the branch {branch} takes signed commits only, and GitHub signs none that a personal token makes: use a GitHub App (forge.github.app), or let the account bypass that"
    )]
    Unsigned {
        /// The branch.
        branch: String,
        /// GitHub's words.
        #[source]
        said: Said,
    },
    /// An answer that fits nothing that is documented.
    #[error("GitHub answered {request} with {status}")]
    Answer {
        /// Method and path.
        request: String,
        /// The status.
        status: StatusCode,
        /// GitHub's words.
        #[source]
        said: Said,
    },
    /// An answer whose content is not what is documented.
    #[error("GitHub's answer to {request} is not understood")]
    Content {
        /// Method and path.
        request: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

fn lacking(needs: Option<&str>) -> String {
    match needs {
        Some(needs) => format!(": it needs {needs}"),
        None => ": it needs Contents: read and write, and its owner the right to write to the repository".to_owned(),
    }
}

/// Where the token should be, and is not.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The variable is not set.
    #[error("the variable {variable} that forge.github names holds no token: set it")]
    NoVariable {
        /// The variable.
        variable: String,
    },
    /// The file cannot be read.
    #[error("{} could not be read", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file holds no token.
    #[error("{} holds no token: it must hold one line of printable characters", file.display())]
    NoToken {
        /// The file.
        file: PathBuf,
    },
    /// A token is one line.
    #[error(
        "the variable {variable} holds something that is no token: it must be one line of printable characters"
    )]
    NotAToken {
        /// The variable.
        variable: String,
    },
    /// The App's key is not one.
    #[error("{} holds no RSA key in PEM, as GitHub hands it out for an App", file.display())]
    NoKey {
        /// The file.
        file: PathBuf,
    },
    /// The key does not sign.
    #[error("{} holds an RSA key that signs nothing: take a new one from the App's settings", file.display())]
    Sign {
        /// The file.
        file: PathBuf,
    },
}

/// The words of GitHub itself, on one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("GitHub said: {0}")]
pub struct Said(pub(super) String);

/// Why there was no answer of use.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The connection.
    #[error("the connection failed")]
    Connection(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A fault of the server.
    #[error("it answered {0}")]
    Status(StatusCode),
}

impl GitHubError {
    /// Whether the same may succeed later, with nothing changed.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            GitHubError::Limited { .. } | GitHubError::Unanswered { .. }
        )
    }
}
