//! The texts of single keys: what they hold when they are left out, and how they are checked.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::names::{NameError, RepoUrl, StateKey, TOKEN_PREFIXES, from_text};

pub(super) fn github_api() -> String {
    "https://api.github.com".to_owned()
}

pub(super) fn producers_file() -> String {
    "pipeline-producers.yaml".to_owned()
}

pub(super) fn id_key() -> String {
    "producer".to_owned()
}

pub(super) fn key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    from_text(deserializer, |text| {
        if text.is_empty() || text.chars().any(char::is_control) {
            Err("id_key must be the name of a key".to_owned())
        } else {
            Ok(text.to_owned())
        }
    })
}

/// The address without a slash at its end. A user in it would be shown wherever it is.
pub(super) fn jenkins_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    from_text(deserializer, |text| {
        let wrong = "the address of Jenkins must be an https:// or http:// URL without user, query and fragment";
        let url = reqwest::Url::parse(text).map_err(|error| format!("{wrong}: {error}"))?;
        let plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && matches!(url.scheme(), "http" | "https");
        match plain {
            true => Ok(Some(url.as_str().trim_end_matches('/').to_owned())),
            false => Err(wrong.to_owned()),
        }
    })
}

/// A user's id; a colon would end it in the header that it is sent in (<https://www.rfc-editor.org/rfc/rfc7617#section-2>).
pub(super) fn user<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    from_text(deserializer, |text| {
        if text.is_empty() || text.contains(':') || text.chars().any(char::is_control) {
            Err("user must be the id of a user, without \":\"".to_owned())
        } else {
            Ok(Some(text.to_owned()))
        }
    })
}

pub(super) fn registry_file() -> String {
    "releases/values.yaml".to_owned()
}

pub(super) fn state_prefix() -> String {
    "argocd".to_owned()
}

pub(super) fn api_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    from_text(deserializer, |text| {
        let url: RepoUrl = text.parse().map_err(|error: NameError| error.to_string())?;
        match url.host_scope() {
            Some(_) => Ok(url.as_str().trim_end_matches('/').to_owned()),
            None => Err(format!(
                "the address {:?} of the API must be an https:// or http:// URL",
                url.as_str()
            )),
        }
    })
}

pub(super) fn variable_of_github<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    variable(deserializer, "GITHUB_TOKEN")
}

pub(super) fn variable_of_jenkins<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    variable(deserializer, "JENKINS_TOKEN")
}

/// A variable's name, and not the token itself, which is not repeated then.
fn variable<'de, D: Deserializer<'de>>(
    deserializer: D,
    example: &str,
) -> Result<Option<String>, D::Error> {
    from_text(deserializer, |text| {
        if TOKEN_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
            return Err(
                "token_env holds a token: put the token in a variable, and name that here"
                    .to_owned(),
            );
        }
        let sound = !text.starts_with(|c: char| c.is_ascii_digit())
            && !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if sound {
            Ok(Some(text.to_owned()))
        } else {
            Err(format!(
                "token_env must be the name of an environment variable, such as {example}"
            ))
        }
    })
}

/// A number, or a client id such as `Iv23liABCdef`.
pub(super) fn app_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let id = Value::deserialize(deserializer)?;
    let id = match &id {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => String::new(),
    };
    if !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '.') {
        Ok(id)
    } else {
        Err(D::Error::custom(
            "id must be the App's client id or number, as its settings show it",
        ))
    }
}

pub(super) fn file_in_repository<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    from_text(deserializer, |text| {
        let stays = !text.starts_with('-')
            && !text.chars().any(|c| c.is_control() || c == '\\')
            && text
                .split('/')
                .all(|segment| !matches!(segment, "" | "." | ".." | ".git"));
        if stays {
            Ok(text.to_owned())
        } else {
            Err(format!(
                "the path {text:?} must be a file in the repository: relative, without \".\", \"..\", \".git\" or empty segments"
            ))
        }
    })
}

/// A prefix is one or more whole segments of a state key, or nothing.
pub(super) fn prefix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    from_text(deserializer, |text| {
        if text.is_empty() {
            return Ok(String::new());
        }
        text.parse().map(|key: StateKey| key.to_string())
    })
}

pub(super) fn other_image<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    image(deserializer).map(Some)
}

pub(super) fn other_object_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    object_name(deserializer).map(Some)
}

pub(super) fn image<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    from_text(deserializer, |text| {
        let sound = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
            && text.chars().all(|c| c.is_ascii_graphic());
        if sound {
            Ok(text.to_owned())
        } else {
            Err(format!(
                "the image {text:?} must be a reference such as registry.example.org/presync:1"
            ))
        }
    })
}

pub(super) fn pull_policy<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    from_text(deserializer, |text| match text {
        "Always" | "IfNotPresent" | "Never" => Ok(Some(text.to_owned())),
        _ => Err(format!(
            "the pull policy {text:?} must be Always, IfNotPresent or Never"
        )),
    })
}

/// The name of a service account or Secret: a DNS subdomain
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names>).
pub(super) fn object_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    from_text(deserializer, |text| {
        let sound = text.len() <= 253
            && text.split('.').all(|label| {
                !label.is_empty()
                    && !label.starts_with('-')
                    && !label.ends_with('-')
                    && label
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            });
        if sound {
            Ok(text.to_owned())
        } else {
            Err(format!(
                "the object name {text:?} must be of the characters a-z, 0-9, \"-\" and \".\", at most 253, as Kubernetes demands"
            ))
        }
    })
}
