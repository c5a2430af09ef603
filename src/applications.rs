//! Live Applications of Argo CD as plain data: from which repositories and paths each one deploys, and with which parameters.
//! Everything else of an Application, which can be a megabyte of status, is not kept.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// An Application as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether it is being deleted. It is live until it is gone.
    pub deleting: bool,
    /// All that it deploys from: `source`, every one of `sources`, and the dry source of the hydrator.
    pub sources: Vec<Source>,
}

/// One source of an Application
/// (<https://argo-cd.readthedocs.io/en/stable/operator-manual/application.yaml>).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The repository, or the Helm repository of `chart`, as it is written there.
    pub repo_url: String,
    /// The folder in it.
    pub path: Option<String>,
    /// The chart, where it comes from a Helm repository.
    pub chart: Option<String>,
    /// The branch, tag or commit.
    pub target_revision: Option<String>,
    /// The name by which other sources take value files from this one.
    pub reference: Option<String>,
    /// Helm's value files, as they are written there (`$ref/…`, relative to `path`, or a URL).
    pub value_files: Vec<String>,
    /// Helm's parameters by name; of a doubled one, both values are kept.
    pub parameters: BTreeMap<String, Vec<String>>,
    /// Helm's parameters whose values are taken from files, with those files, as they are written there.
    pub file_parameters: BTreeMap<String, String>,
    /// Helm's values as an object, in JSON.
    pub values_object: Option<String>,
    /// Helm's values as text, in YAML.
    pub values: Option<String>,
    /// Whether a plugin renders it, to which Helm's parameters mean nothing.
    pub has_plugin: bool,
    /// Every text of what other tools than Helm are told (plugin, Kustomize, directory), and of anything that is not known.
    pub other_texts: Vec<String>,
}

/// The Applications of one Argo CD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Whose they are, in words for people: `the context live`.
    pub name: String,
    /// All of them.
    pub applications: Vec<Application>,
}

/// An object that is not the Application that we know how to read. It may deploy anything, so it is never left out.
#[derive(Debug, thiserror::Error)]
#[error("the Application {object} could not be read")]
pub struct ApplicationError {
    object: String,
    #[source]
    source: serde_json::Error,
}

impl Application {
    /// Reads one object of a list.
    pub fn read(json: &str) -> Result<Application, ApplicationError> {
        match serde_json::from_str::<Raw>(json) {
            Ok(raw) => Ok(raw.into()),
            Err(source) => Err(ApplicationError {
                object: name_of(json),
                source,
            }),
        }
    }

    /// The name with the namespace, as people write it.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The values of a Helm parameter, of all sources together.
    pub fn parameter<'a>(&'a self, name: &str) -> Vec<&'a str> {
        let of_source = |source: &'a Source| source.parameters.get(name).into_iter().flatten();
        self.sources
            .iter()
            .flat_map(of_source)
            .map(String::as_str)
            .collect()
    }
}

/// Why a file of manifests cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// It is neither YAML nor JSON.
    #[error("the Applications in {file} could not be read")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong.
        #[source]
        source: serde_yaml::Error,
    },
    /// Something in it is no Application.
    #[error(
        "{file} holds {kind:?} beside Applications; it takes Applications, and lists of them, alone"
    )]
    Kind {
        /// The file.
        file: String,
        /// The kind that stands there.
        kind: String,
    },
    /// One of them could not be read.
    #[error(transparent)]
    Object(#[from] ApplicationError),
}

/// Reads the Applications of a file: YAML with any number of documents, or JSON, each an Application or a list of them.
/// `file` is its name, for errors.
pub fn read_manifests(text: &str, file: &str) -> Result<Vec<Application>, ManifestsError> {
    let mut applications = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let object = Value::deserialize(document).map_err(|source| ManifestsError::Syntax {
            file: file.to_owned(),
            source,
        })?;
        if object.is_null() {
            continue;
        }
        let objects = match object.get("items") {
            Some(Value::Array(items)) => items.clone(),
            _ => vec![object],
        };
        for object in objects {
            match object.get("kind").and_then(Value::as_str) {
                Some("Application") => applications.push(Application::read(&object.to_string())?),
                kind => {
                    return Err(ManifestsError::Kind {
                        file: file.to_owned(),
                        kind: kind.unwrap_or("something without a kind").to_owned(),
                    });
                }
            }
        }
    }
    Ok(applications)
}

/// What can be said of an object that could not be read.
fn name_of(json: &str) -> String {
    let object: Value = serde_json::from_str(json).unwrap_or_default();
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    match (text("/metadata/namespace"), text("/metadata/name")) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        (None, Some(name)) => name.to_owned(),
        (_, None) => "without a name".to_owned(),
    }
}

#[derive(Deserialize)]
struct Raw {
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
struct RawSource {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_that_an_application_deploys_from_is_a_source() {
        let application = Application::read(
            r#"{
              "metadata": {"name": "a", "namespace": "argocd", "deletionTimestamp": "2026-01-01T00:00:00Z"},
              "spec": {
                "source": {"repoURL": "https://h/o/one.git", "path": "x/chart", "targetRevision": "main",
                  "helm": {"valueFiles": ["../config/prd/values.yaml"], "values": "a: 1",
                    "parameters": [{"name": "hook.stage", "value": "prd"}, {"name": "hook.path", "value": "x"}]}},
                "sources": [{"repoURL": "https://h/charts", "chart": "c", "helm": {"valuesObject": {"stage": "dev"}}},
                            {"repoURL": "https://h/o/two.git", "ref": "values", "helm": {"parameters": [{"name": "hook.stage"}]}}],
                "sourceHydrator": {"drySource": {"repoURL": "https://h/o/dry.git", "path": "y", "targetRevision": "HEAD"}}
              },
              "status": {"history": [{"anything": []}]}
            }"#,
        )
        .unwrap();
        assert!(application.deleting);
        assert_eq!(application.full_name(), "argocd/a");
        let urls: Vec<&str> = application
            .sources
            .iter()
            .map(|s| s.repo_url.as_str())
            .collect();
        assert_eq!(
            urls,
            [
                "https://h/o/one.git",
                "https://h/charts",
                "https://h/o/two.git",
                "https://h/o/dry.git"
            ]
        );
        assert_eq!(application.parameter("hook.stage"), ["prd", ""]);
        assert_eq!(
            application.sources[0].value_files,
            ["../config/prd/values.yaml"]
        );
        assert_eq!(application.sources[0].values.as_deref(), Some("a: 1"));
        let object = application.sources[1].values_object.as_deref();
        assert_eq!(object, Some(r#"{"stage":"dev"}"#));
        assert_eq!(application.sources[2].reference.as_deref(), Some("values"));
    }

    #[test]
    fn manifests_are_single_objects_and_lists_in_yaml_or_json() {
        let one =
            "kind: Application\nmetadata: {name: a, namespace: n}\nspec: {source: {repoURL: x}}\n";
        let list = r#"{"kind": "List", "items": [{"kind": "Application", "metadata": {"name": "b", "namespace": "n"}, "spec": {}}]}"#;
        let both = format!("---\n{one}---\n# nothing\n---\n{list}\n");
        for (text, expected) in [(one, "n/a"), (list, "n/b"), (both.as_str(), "n/a n/b")] {
            let names: Vec<String> = read_manifests(text, "x.yaml")
                .unwrap()
                .iter()
                .map(Application::full_name)
                .collect();
            assert_eq!(names.join(" "), expected);
        }
    }

    #[test]
    fn a_file_with_anything_else_than_applications_is_refused() {
        for (text, words) in [
            (
                "kind: AppProject\nmetadata: {name: a}\n",
                "\"AppProject\" beside Applications",
            ),
            ("kind: List\nitems: [{}]\n", "something without a kind"),
            ("kind: List\nitems: {}\n", "\"List\" beside"),
            ("a: [", "could not be read"),
            ("- 1", "without a kind"),
        ] {
            let error = read_manifests(text, "x.yaml").unwrap_err().to_string();
            assert!(
                error.contains(words) && error.contains("x.yaml"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn an_object_that_cannot_be_read_is_named_and_not_left_out() {
        for (json, name) in [
            (r#"{"metadata": {"name": "a", "namespace": "n"}}"#, "n/a"),
            (
                r#"{"metadata": {"name": "a"}, "spec": {}}"#,
                "the Application a ",
            ),
            (
                r#"{"metadata": {"name": "a", "namespace": "n"}, "spec": {"source": {"path": "x"}}}"#,
                "n/a",
            ),
            (
                r#"{"metadata": {"name": "a", "namespace": "n"}, "spec": {"sources": {}}}"#,
                "n/a",
            ),
            ("[]", "without a name"),
        ] {
            let error = Application::read(json).unwrap_err();
            assert!(error.to_string().contains(name), "{json}: {error}");
        }
    }
}
