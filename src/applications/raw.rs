//! An Application as its object is written
//! (<https://argo-cd.readthedocs.io/en/stable/operator-manual/application.yaml>).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Application, Source};

#[derive(Deserialize)]
pub(super) struct Raw {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    source: Option<RawSource>,
    sources: Option<Vec<RawSource>>,
    source_hydrator: Option<Hydrator>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hydrator {
    dry_source: Option<RawSource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawSource {
    #[serde(rename = "repoURL")]
    repo_url: String,
    path: Option<String>,
    chart: Option<String>,
    target_revision: Option<String>,
    #[serde(rename = "ref")]
    reference: Option<String>,
    helm: Option<Helm>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Helm {
    value_files: Option<Vec<String>>,
    parameters: Option<Vec<Parameter>>,
    file_parameters: Option<Vec<FileParameter>>,
    values: Option<String>,
    values_object: Option<Value>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct FileParameter {
    name: String,
    #[serde(default)]
    path: String,
}

impl From<Raw> for Application {
    fn from(raw: Raw) -> Application {
        let Spec {
            source,
            sources,
            source_hydrator,
        } = raw.spec;
        let dry = source_hydrator.and_then(|hydrator| hydrator.dry_source);
        let all = source
            .into_iter()
            .chain(sources.into_iter().flatten())
            .chain(dry);
        Application {
            namespace: raw.metadata.namespace,
            name: raw.metadata.name,
            deleting: raw.metadata.deletion_timestamp.is_some(),
            sources: all.map(Source::from).collect(),
        }
    }
}

impl From<RawSource> for Source {
    fn from(raw: RawSource) -> Source {
        let helm = raw.helm.unwrap_or_default();
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for Parameter { name, value } in helm.parameters.unwrap_or_default() {
            parameters.entry(name).or_default().push(value);
        }
        let files = helm.file_parameters.into_iter().flatten();
        Source {
            repo_url: raw.repo_url,
            path: raw.path,
            chart: raw.chart,
            target_revision: raw.target_revision,
            reference: raw.reference,
            value_files: helm.value_files.unwrap_or_default(),
            parameters,
            file_parameters: files.map(|file| (file.name, file.path)).collect(),
            values_object: helm.values_object.map(|values| values.to_string()),
            values: helm.values.filter(|values| !values.trim().is_empty()),
            has_plugin: raw.others.get("plugin").is_some_and(|p| !p.is_null()),
            other_texts: texts(raw.others.into_values()),
        }
    }
}

/// Every text in these values, keys included.
fn texts(values: impl IntoIterator<Item = Value>) -> Vec<String> {
    let mut open: Vec<Value> = values.into_iter().collect();
    let mut found = Vec::new();
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                for (key, value) in members {
                    found.push(key);
                    open.push(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found.sort_unstable();
    found
}
