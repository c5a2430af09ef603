//! Where Jenkins is, and how it lets us in.

use std::path::PathBuf;

use super::{Document, SettingsError, file};

/// Where Jenkins is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JenkinsSettings {
    /// A server.
    Http {
        /// Its address, with the path below which it lies, without a slash at its end.
        url: String,
        /// How it lets us in; nobody in particular when not set.
        access: Option<JenkinsAccess>,
    },
    /// A folder that answers in its place, in the sandbox.
    Folder(PathBuf),
}

/// A user, and where his API token is. No secret stands in the settings themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JenkinsAccess {
    /// The user.
    pub user: String,
    /// Where his API token is.
    pub token: TokenPlace,
}

/// Where a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenPlace {
    /// In this variable.
    Variable(String),
    /// In this file.
    File(PathBuf),
}

impl Document<'_> {
    pub(super) fn jenkins(&self, raw: file::Jenkins) -> Result<JenkinsSettings, SettingsError> {
        let wrong = |sentence: &str| Err(self.wrong(&["jenkins"], sentence));
        let token = match (raw.token_env, raw.token_file) {
            (Some(_), Some(_)) => {
                return wrong("jenkins has both token_env and token_file; keep one of them");
            }
            (Some(variable), None) => Some(TokenPlace::Variable(variable)),
            (None, Some(file)) => Some(TokenPlace::File(self.folder.join(file))),
            (None, None) => None,
        };
        match (raw.url, raw.folder) {
            (None, None) => wrong("jenkins is empty; it takes one of the keys url and folder"),
            (Some(_), Some(_)) => wrong("jenkins has both url and folder; keep one of them"),
            (None, Some(_)) if raw.user.is_some() || token.is_some() => {
                wrong("jenkins.folder lets everybody in; leave user and token out")
            }
            (None, Some(folder)) => Ok(JenkinsSettings::Folder(self.folder.join(folder))),
            (Some(url), None) => {
                let access = match (raw.user, token) {
                    (Some(user), Some(token)) => Some(JenkinsAccess { user, token }),
                    (None, None) => None,
                    (Some(_), None) => {
                        return wrong(
                            "jenkins.user comes with his API token: set token_env or token_file",
                        );
                    }
                    (None, Some(_)) => {
                        return wrong(
                            "an API token of Jenkins is that of a user: set jenkins.user",
                        );
                    }
                };
                Ok(JenkinsSettings::Http { url, access })
            }
        }
    }
}
