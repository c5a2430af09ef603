//! The shape of the file, as serde reads it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::layout::Layout;
use crate::names::{
    BranchName, NameError, Namespace, OwnerName, RepoName, RepoUrl, StateKey, TOKEN_PREFIXES,
    from_text,
};
use crate::protect::Protection;
use crate::registry::check::CHECKS;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) forge: Forge,
    pub(super) registry: Registry,
    pub(super) state: State,
    pub(super) runner: Runner,
    pub(super) applications: Option<Applications>,
    pub(super) producers: Option<Producers>,
    pub(super) jenkins: Option<Jenkins>,
    #[serde(default)]
    pub(super) terraform: Terraform,
    #[serde(default)]
    pub(super) plan: Plan,
    #[serde(default)]
    pub(super) protect: Protection,
    #[serde(default)]
    pub(super) checks: Checks,
    #[serde(default)]
    pub(super) layout: Layout,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Forge {
    pub(super) git: Option<GitForge>,
    pub(super) github: Option<GitHubForge>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitForge {
    pub(super) root: String,
    pub(super) known_as: Option<RepoUrl>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitHubForge {
    pub(super) owner: OwnerName,
    #[serde(default = "RepoUrl::github")]
    pub(super) url: RepoUrl,
    #[serde(default = "github_api", deserialize_with = "api_url")]
    pub(super) api: String,
    #[serde(default, deserialize_with = "variable_of_github")]
    pub(super) token_env: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) app: Option<GitHubApp>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitHubApp {
    #[serde(deserialize_with = "app_id")]
    pub(super) id: String,
    pub(super) installation: u64,
    pub(super) private_key_file: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Registry {
    pub(super) repo: RepoName,
    #[serde(default = "registry_file", deserialize_with = "file_in_repository")]
    pub(super) file: String,
    #[serde(default = "BranchName::main")]
    pub(super) branch: BranchName,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub(super) repo: Option<RepoName>,
    pub(super) url: Option<RepoUrl>,
    #[serde(default = "BranchName::main")]
    pub(super) branch: BranchName,
    #[serde(default = "state_prefix", deserialize_with = "prefix")]
    pub(super) prefix: String,
}

/// `local`, or a mapping with one key.
pub(super) enum Runner {
    Local(Local),
    Kubernetes(Box<Kubernetes>),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Local {
    pub(super) sops_age_key_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kubernetes {
    pub(super) context: Option<String>,
    pub(super) namespace: Namespace,
    #[serde(deserialize_with = "image")]
    pub(super) image: String,
    #[serde(default, deserialize_with = "pull_policy")]
    pub(super) pull_policy: Option<String>,
    #[serde(deserialize_with = "object_name")]
    pub(super) service_account: String,
    #[serde(deserialize_with = "object_name")]
    pub(super) secret: String,
    pub(super) deadline: Option<Seconds>,
    pub(super) start_deadline: Option<Seconds>,
    pub(super) unreachable: Option<Seconds>,
    pub(super) keep: Option<Keep>,
    #[serde(default)]
    pub(super) pod_template: Map<String, Value>,
    #[serde(default)]
    pub(super) destroy: Destroying,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Destroying {
    #[serde(default, deserialize_with = "other_image")]
    pub(super) image: Option<String>,
    #[serde(default, deserialize_with = "other_object_name")]
    pub(super) service_account: Option<String>,
    #[serde(default, deserialize_with = "other_object_name")]
    pub(super) secret: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Applications {
    pub(super) file: Option<PathBuf>,
    pub(super) instances: Option<Vec<Instance>>,
    #[serde(default)]
    pub(super) expected: Expected,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    pub(super) namespace: Option<Namespace>,
    #[serde(default, deserialize_with = "other_object_name")]
    pub(super) parent: Option<String>,
    #[serde(default, deserialize_with = "other_object_name")]
    pub(super) project: Option<String>,
    pub(super) destination: Option<Destination>,
    pub(super) retry: Option<Map<String, Value>>,
    #[serde(default)]
    pub(super) parameters: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Destination {
    pub(super) server: Option<String>,
    pub(super) name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Checks {
    #[serde(default)]
    pub(super) off: BTreeMap<CheckToSkip, Reason>,
}

/// The name of a check.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CheckToSkip(pub(super) &'static str);

impl<'de> Deserialize<'de> for CheckToSkip {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, |text| {
            let known = CHECKS.map(|check| check.name);
            match known.into_iter().find(|name| *name == text) {
                Some(name) => Ok(CheckToSkip(name)),
                None => Err(format!(
                    "no check is called {text:?}; there are {}",
                    known.join(", ")
                )),
            }
        })
    }
}

/// Why a check is not made: a text that says something.
pub(super) struct Reason(pub(super) String);

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, |text| match text.trim() {
            "" => Err("a check that is switched off needs a reason".to_owned()),
            text if text.chars().any(char::is_control) => {
                Err("the reason must be one line of text".to_owned())
            }
            text => Ok(Reason(text.to_owned())),
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Instance {
    pub(super) context: Option<String>,
    pub(super) namespaces: Option<Vec<Namespace>>,
    pub(super) minimum: Option<Minimum>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Producers {
    pub(super) repo: RepoName,
    #[serde(default = "BranchName::main")]
    pub(super) branch: BranchName,
    #[serde(default = "producers_file", deserialize_with = "file_in_repository")]
    pub(super) file: String,
    #[serde(default = "id_key", deserialize_with = "key")]
    pub(super) id_key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Jenkins {
    #[serde(default, deserialize_with = "jenkins_url")]
    pub(super) url: Option<String>,
    #[serde(default, deserialize_with = "user")]
    pub(super) user: Option<String>,
    #[serde(default, deserialize_with = "variable_of_jenkins")]
    pub(super) token_env: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) folder: Option<PathBuf>,
}

/// How many Applications there must be: an empty list is no list.
pub(super) struct Minimum(pub(super) usize);

impl<'de> Deserialize<'de> for Minimum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match usize::deserialize(deserializer)? {
            0 => Err(D::Error::custom(
                "the minimum 0 would take an empty list for a whole one; it must be 1 or more",
            )),
            minimum => Ok(Minimum(minimum)),
        }
    }
}

/// A whole number of seconds, from one second to a week.
pub(super) struct Seconds(pub(super) u64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            seconds @ 1..=604_800 => Ok(Seconds(seconds)),
            other => Err(D::Error::custom(format!(
                "{other} must be a number of seconds from 1 to 604800"
            ))),
        }
    }
}

/// The same, from ten minutes on: the cluster must not remove what a job still judges.
pub(super) struct Keep(pub(super) u64);

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            seconds @ 600..=604_800 => Ok(Keep(seconds)),
            other => Err(D::Error::custom(format!(
                "keep must be a number of seconds from 600 to 604800, not {other}: the end of a Job is read before the cluster removes it"
            ))),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Terraform {
    pub(super) program: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) allow_unmerged: bool,
}

impl<'de> Deserialize<'de> for Runner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RunnerVisitor)
    }
}

struct RunnerVisitor;

impl<'de> Visitor<'de> for RunnerVisitor {
    type Value = Runner;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("local, or a mapping with the key local or kubernetes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Runner, E> {
        match text {
            "local" => Ok(Runner::Local(Local::default())),
            "kubernetes" => Err(E::custom(
                "the runner kubernetes needs its keys below it: namespace, image, service_account and secret",
            )),
            other => Err(E::custom(format!(
                "unknown runner {other:?}; known are local and kubernetes"
            ))),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Runner, A::Error> {
        let one = "runner takes one of the keys local and kubernetes";
        let Some(key) = map.next_key::<String>()? else {
            return Err(A::Error::custom(one));
        };
        let runner = match key.as_str() {
            "local" => Runner::Local(map.next_value::<Option<Local>>()?.unwrap_or_default()),
            "kubernetes" => Runner::Kubernetes(Box::new(map.next_value()?)),
            other => {
                return Err(A::Error::custom(format!(
                    "unknown runner {other:?}; known are local and kubernetes"
                )));
            }
        };
        match map.next_key::<String>()? {
            Some(second) => Err(A::Error::custom(format!(
                "{one}, and {second:?} stands beside {key:?}"
            ))),
            None => Ok(runner),
        }
    }
}

fn github_api() -> String {
    "https://api.github.com".to_owned()
}

fn producers_file() -> String {
    "pipeline-producers.yaml".to_owned()
}

fn id_key() -> String {
    "producer".to_owned()
}

fn key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    from_text(deserializer, |text| {
        if text.is_empty() || text.chars().any(char::is_control) {
            Err("id_key must be the name of a key".to_owned())
        } else {
            Ok(text.to_owned())
        }
    })
}

/// The address without a slash at its end. A user in it would be shown wherever it is.
fn jenkins_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
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
fn user<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    from_text(deserializer, |text| {
        if text.is_empty() || text.contains(':') || text.chars().any(char::is_control) {
            Err("user must be the id of a user, without \":\"".to_owned())
        } else {
            Ok(Some(text.to_owned()))
        }
    })
}

fn registry_file() -> String {
    "releases/values.yaml".to_owned()
}

fn state_prefix() -> String {
    "argocd".to_owned()
}

fn api_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
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

fn variable_of_github<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    variable(deserializer, "GITHUB_TOKEN")
}

fn variable_of_jenkins<'de, D: Deserializer<'de>>(
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
fn app_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
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

fn file_in_repository<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
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
fn prefix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    from_text(deserializer, |text| {
        if text.is_empty() {
            return Ok(String::new());
        }
        text.parse().map(|key: StateKey| key.to_string())
    })
}

fn other_image<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    image(deserializer).map(Some)
}

fn other_object_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    object_name(deserializer).map(Some)
}

fn image<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
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

fn pull_policy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    from_text(deserializer, |text| match text {
        "Always" | "IfNotPresent" | "Never" => Ok(Some(text.to_owned())),
        _ => Err(format!(
            "the pull policy {text:?} must be Always, IfNotPresent or Never"
        )),
    })
}

/// The name of a service account or Secret: a DNS subdomain
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names>).
fn object_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
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

/// The path with `.` and `..` taken out by their text.
pub(super) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
