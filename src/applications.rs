//! Live Applications of Argo CD as plain data: from which repositories and paths each one deploys, and with which parameters.
//! Everything else of an
//! Application, which can be a megabyte of status, is not kept; [`observed`] keeps more of it.

use std::collections::BTreeMap;

use serde_json::Value;

mod manifests;
pub mod observed;
mod raw;

pub use manifests::{ManifestsError, read_manifests};
use raw::Raw;

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
pub struct Instance<T = Application> {
    /// Whose they are, in words for people: `the context live`.
    pub name: String,
    /// All of them.
    pub applications: Vec<T>,
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
