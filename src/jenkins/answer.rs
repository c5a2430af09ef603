//! What Jenkins' JSON API answers about a job.

use serde::{Deserialize, Deserializer};

use crate::names::JobName;

use super::{Build, Job};

/// What is asked for of a job, and no more: a job may have thousands of builds
/// (<https://www.jenkins.io/doc/book/using/remote-access-api/#RemoteaccessAPI-Depthcontrol>).
pub(super) const TREE: &str = "fullName,lastSuccessfulBuild[number,result,url,artifacts[relativePath]],lastCompletedBuild[number,result,url]";

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "_class", default)]
    class: String,
    #[serde(rename = "fullName")]
    full_name: Option<String>,
    /// A key that is missing makes it no job, and one with null a job without such a build.
    #[serde(rename = "lastSuccessfulBuild", default, deserialize_with = "present")]
    last_successful: Option<Option<RawBuild>>,
    #[serde(rename = "lastCompletedBuild", default)]
    last_completed: Option<RawBuild>,
}

#[derive(Deserialize)]
struct RawBuild {
    number: u64,
    result: Option<String>,
    #[serde(default)]
    url: String,
    #[serde(default)]
    artifacts: Vec<RawArtifact>,
}

#[derive(Deserialize)]
struct RawArtifact {
    #[serde(rename = "relativePath")]
    relative_path: String,
}

fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<RawBuild>>, D::Error> {
    Option::<RawBuild>::deserialize(deserializer).map(Some)
}

/// What an answer says.
pub(super) enum Told {
    Job(Job),
    /// It is something else, of this class.
    Other(String),
    /// Its name is this one.
    Spelled(String),
}

pub(super) fn read(json: &[u8], job: &JobName) -> Result<Told, serde_json::Error> {
    let item: Item = serde_json::from_slice(json)?;
    if let Some(name) = item.full_name.filter(|name| name != job.as_str()) {
        return Ok(Told::Spelled(name));
    }
    let Some(last_successful) = item.last_successful else {
        return Ok(Told::Other(item.class));
    };
    Ok(Told::Job(Job {
        last_successful: last_successful.map(Build::from),
        last_completed: item.last_completed.map(Build::from),
    }))
}

impl From<RawBuild> for Build {
    fn from(raw: RawBuild) -> Build {
        Build {
            number: raw.number,
            result: raw.result.unwrap_or_default(),
            url: raw.url,
            artifacts: raw
                .artifacts
                .into_iter()
                .map(|artifact| artifact.relative_path)
                .collect(),
        }
    }
}
