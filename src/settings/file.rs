//! The shape of the file, as serde reads it.

mod checks;
mod texts;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::layout::Layout;
use crate::names::{BranchName, Namespace, OwnerName, RepoName, RepoUrl};
use crate::protect::Protection;

pub(super) use checks::Checks;
use texts::{
    api_url, app_id, file_in_repository, github_api, id_key, image, jenkins_url, key, object_name,
    other_image, other_object_name, prefix, producers_file, pull_policy, registry_file,
    state_prefix, user, variable_of_github, variable_of_jenkins,
};

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
