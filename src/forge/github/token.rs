//! What GitHub is shown to be let in: a token, or the proof of an App, for which GitHub hands out tokens of one hour.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::settings::{GitHubAccess, GitHubApp};

use super::error::TokenError;

/// A value that no log and no error shows.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

impl Secret {
    /// A token is one line of printable characters; white space around it is what an editor leaves.
    pub(super) fn parse(text: &str) -> Option<Secret> {
        let text = text.trim();
        let sound = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        sound.then(|| Secret(text.to_owned()))
    }

    /// For the one header that carries it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

/// How we are let in.
#[derive(Debug)]
pub(super) enum Access {
    /// By a token of a person or of a machine's account.
    Token(Secret),
    /// As an App.
    App(Box<AppKey>),
}

impl Access {
    pub(super) fn open(access: &GitHubAccess) -> Result<Access, TokenError> {
        match access {
            GitHubAccess::TokenEnv(variable) => {
                let value = std::env::var(variable).unwrap_or_default();
                if value.trim().is_empty() {
                    return Err(TokenError::NoVariable {
                        variable: variable.clone(),
                    });
                }
                let token = Secret::parse(&value).ok_or_else(|| TokenError::NotAToken {
                    variable: variable.clone(),
                })?;
                Ok(Access::Token(token))
            }
            GitHubAccess::TokenFile(file) => {
                let token = Secret::parse(&read(file)?);
                let token = token.ok_or_else(|| TokenError::NoToken { file: file.clone() })?;
                Ok(Access::Token(token))
            }
            GitHubAccess::App(app) => Ok(Access::App(Box::new(AppKey::read(app)?))),
        }
    }
}

fn read(file: &Path) -> Result<String, TokenError> {
    std::fs::read_to_string(file).map_err(|source| TokenError::File {
        file: file.to_owned(),
        source,
    })
}

/// An App's private key, and where the App is installed.
pub(super) struct AppKey {
    id: String,
    pub(super) installation: u64,
    file: PathBuf,
    key: RsaKeyPair,
}

impl std::fmt::Debug for AppKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AppKey({}, key hidden)", self.id)
    }
}

impl AppKey {
    fn read(app: &GitHubApp) -> Result<AppKey, TokenError> {
        let file = app.private_key_file.clone();
        let pem = read(&file)?;
        // GitHub hands out PKCS#1; PKCS#8 is what other programs make of it.
        let key = match PrivateKeyDer::from_pem_slice(pem.as_bytes()) {
            Ok(PrivateKeyDer::Pkcs1(key)) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
            Ok(PrivateKeyDer::Pkcs8(key)) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
            _ => return Err(TokenError::NoKey { file }),
        };
        let key = key.map_err(|_| TokenError::NoKey { file: file.clone() })?;
        Ok(AppKey {
            id: app.id.clone(),
            installation: app.installation,
            file,
            key,
        })
    }

    /// A JSON Web Token that says who the App is, for ten minutes at most; it begins a minute ago, since clocks differ
    /// (<https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app>).
    pub(super) fn proof(&self, now: SystemTime) -> Result<Secret, TokenError> {
        let now = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let claims =
            serde_json::json!({ "iat": now.saturating_sub(60), "exp": now + 540, "iss": self.id });
        let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
        let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let mut signature = vec![0; self.key.public().modulus_len()];
        let random = SystemRandom::new();
        let made = self.key.sign(
            &RSA_PKCS1_SHA256,
            &random,
            signed.as_bytes(),
            &mut signature,
        );
        made.map_err(|_| TokenError::Sign {
            file: self.file.clone(),
        })?;
        Ok(Secret(format!(
            "{signed}.{}",
            URL_SAFE_NO_PAD.encode(signature)
        )))
    }
}

/// A token that GitHub handed out for an installation.
#[derive(Clone, Debug)]
pub(super) struct Installed {
    pub(super) token: Secret,
    pub(super) may_write: bool,
    until: SystemTime,
}

impl Installed {
    /// `until` as GitHub has it, in RFC 3339; one that cannot be read is taken to end at once.
    pub(super) fn new(token: Secret, until: &str, may_write: bool) -> Installed {
        let until = until
            .parse::<jiff::Timestamp>()
            .map_or(UNIX_EPOCH, SystemTime::from);
        Installed {
            token,
            may_write,
            until,
        }
    }

    /// Five minutes are left for what is begun with it.
    pub(super) fn holds(&self, now: SystemTime) -> bool {
        now + Duration::from_secs(300) < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shown_by_no_debug_format() {
        let access = Access::Token(Secret::parse(" ghp_0123456789\n").unwrap());
        assert_eq!(format!("{access:?}"), "Token(Secret(hidden))");
    }

    #[test]
    fn what_could_end_the_header_it_is_sent_in_is_no_token() {
        for text in ["", " \n", "a b", "a\nb", "a\0", "é"] {
            assert_eq!(Secret::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_token_of_an_installation_holds_until_five_minutes_before_its_end() {
        let token = Secret::parse("ghs_x").unwrap();
        let installed = Installed::new(token.clone(), "2026-01-01T01:00:00Z", true);
        let at = |text: &str| SystemTime::from(text.parse::<jiff::Timestamp>().unwrap());
        assert!(installed.holds(at("2026-01-01T00:54:59Z")));
        assert!(!installed.holds(at("2026-01-01T00:55:01Z")));
        assert!(!Installed::new(token, "soon", true).holds(UNIX_EPOCH));
    }
}
