//! Live Applications with what they are set to and how they are: what a check compares and judges.

use serde::Deserialize;
use serde_json::Value;

use super::raw::RawSource;
use super::{Application, ApplicationError, Source, name_of};

/// The annotation that tells Argo CD which paths an Application is rendered from
/// (<https://argo-cd.readthedocs.io/en/stable/operator-manual/high_availability/#manifest-paths-annotation>).
pub const GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";
/// The annotation that asks for a comparison, and goes with it.
const REFRESH: &str = "argocd.argoproj.io/refresh";

/// A live Application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Its name and all that it may deploy from.
    pub application: Application,
    /// What it deploys from: `sources` where there are any, else `source`.
    pub sources: Vec<Source>,
    /// Whether it has `sources`, and not the one `source`.
    pub has_sources: bool,
    /// The paths that it is rendered from, as annotated.
    pub generate_paths: Option<String>,
    /// Whether a comparison is asked for and was not made yet.
    pub refresh_is_due: bool,
    /// Its project.
    pub project: String,
    /// The address of the cluster that it deploys to.
    pub server: Option<String>,
    /// The name of that cluster.
    pub cluster: Option<String>,
    /// The namespace that it deploys into.
    pub namespace: Option<String>,
    /// How Argo CD syncs it by itself.
    pub automated: Option<Automated>,
    /// How a failed sync is tried again, as it is written.
    pub retry: Option<Value>,
    /// Its sync options.
    pub sync_options: Vec<String>,
    /// How it is.
    pub status: Status,
}

/// How Argo CD syncs an Application by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Automated {
    /// Whether what is no longer rendered is removed.
    pub prune: bool,
    /// Whether what was changed in the cluster is set back.
    pub self_heal: bool,
}

/// How an Application is, as its controller says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// `Synced`, `OutOfSync` or `Unknown`; empty where it was never compared.
    pub sync: String,
    /// The commits, or chart versions, that were compared, one for each source.
    pub revisions: Vec<String>,
    /// Whether what was compared is what it is set to now.
    pub compared: Compared,
    /// `Healthy`, `Progressing`, `Degraded`, `Suspended`, `Missing` or `Unknown`; empty where it was never judged.
    pub health: String,
    /// What the controller complains of.
    pub conditions: Vec<Condition>,
    /// The last sync.
    pub operation: Option<Operation>,
    /// Whether a sync is asked for and has not begun.
    pub sync_is_due: bool,
    /// The Applications among the objects that it manages.
    pub children: Vec<Child>,
}

/// Whether the last comparison was with what an Application is set to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compared {
    /// It was never compared.
    #[default]
    Never,
    /// With other sources or another destination.
    WithOther,
    /// It was.
    AsSet,
}

/// A complaint of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Condition {
    /// What it is, such as `ComparisonError`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// In the controller's words.
    #[serde(default)]
    pub message: String,
}

/// A sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// `Running`, `Terminating`, `Succeeded`, `Failed` or `Error`.
    pub phase: String,
    /// In the controller's words.
    pub message: String,
    /// The commits, or chart versions, that it synced, one for each source.
    pub revisions: Vec<String>,
}

/// An Application that another one manages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether the parent no longer renders it, and would remove it if it were synced with pruning.
    pub waits_for_pruning: bool,
}

impl Observed {
    /// Reads one object of a list.
    pub fn read(json: &str) -> Result<Observed, ApplicationError> {
        let application = Application::read(json)?;
        let raw: Raw = serde_json::from_str(json).map_err(|source| ApplicationError {
            object: name_of(json),
            source,
        })?;
        Ok(raw.into_observed(application))
    }
}

#[derive(Deserialize)]
struct Raw {
    metadata: Metadata,
    spec: Spec,
    operation: Option<Value>,
    #[serde(default)]
    status: RawStatus,
}

#[derive(Deserialize)]
struct Metadata {
    annotations: Option<serde_json::Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    project: String,
    #[serde(default)]
    destination: Value,
    source: Option<Value>,
    sources: Option<Vec<Value>>,
    #[serde(default)]
    sync_policy: SyncPolicy,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SyncPolicy {
    automated: Option<RawAutomated>,
    retry: Option<Value>,
    sync_options: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawAutomated {
    enabled: Option<bool>,
    prune: Option<bool>,
    self_heal: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    sync: RawSync,
    health: RawHealth,
    conditions: Option<Vec<Condition>>,
    operation_state: Option<RawOperation>,
    resources: Option<Vec<RawResource>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSync {
    status: String,
    revision: Option<String>,
    revisions: Option<Vec<String>>,
    compared_to: Option<RawCompared>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCompared {
    source: Option<Value>,
    sources: Option<Vec<Value>>,
    destination: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawHealth {
    status: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawOperation {
    phase: String,
    message: String,
    sync_result: RawSyncResult,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSyncResult {
    revision: Option<String>,
    revisions: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawResource {
    group: String,
    kind: String,
    namespace: String,
    name: String,
    requires_pruning: bool,
}

impl Raw {
    fn into_observed(self, application: Application) -> Observed {
        let Raw {
            metadata,
            spec,
            operation,
            status,
        } = self;
        let annotations = metadata.annotations.unwrap_or_default();
        let annotation = |name: &str| {
            let value = annotations.get(name).and_then(Value::as_str);
            value.map(str::to_owned)
        };
        let compared = compared(&spec, status.sync.compared_to.as_ref());
        let many = spec.sources.filter(|sources| !sources.is_empty());
        let has_sources = many.is_some();
        let sources = many.unwrap_or_else(|| spec.source.into_iter().collect());
        // Each was read once already, as a source of the Application.
        let sources = sources
            .into_iter()
            .filter_map(|source| serde_json::from_value::<RawSource>(source).ok())
            .map(Source::from);
        let destination = |key: &str| {
            let value = spec.destination.get(key).and_then(Value::as_str);
            value.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let automated = spec.sync_policy.automated;
        Observed {
            application,
            sources: sources.collect(),
            has_sources,
            generate_paths: annotation(GENERATE_PATHS),
            refresh_is_due: annotation(REFRESH).is_some(),
            project: spec.project,
            server: destination("server"),
            cluster: destination("name"),
            namespace: destination("namespace"),
            automated: automated
                .filter(|automated| automated.enabled != Some(false))
                .map(|automated| Automated {
                    prune: automated.prune.unwrap_or_default(),
                    self_heal: automated.self_heal.unwrap_or_default(),
                }),
            retry: spec.sync_policy.retry,
            sync_options: spec.sync_policy.sync_options.unwrap_or_default(),
            status: Status {
                sync: status.sync.status,
                revisions: revisions(status.sync.revision, status.sync.revisions),
                compared,
                health: status.health.status,
                conditions: status.conditions.unwrap_or_default(),
                operation: status.operation_state.map(|operation| Operation {
                    phase: operation.phase,
                    message: operation.message,
                    revisions: revisions(
                        operation.sync_result.revision,
                        operation.sync_result.revisions,
                    ),
                }),
                sync_is_due: operation.is_some_and(|operation| !operation.is_null()),
                children: status
                    .resources
                    .into_iter()
                    .flatten()
                    .filter(|it| it.group == "argoproj.io" && it.kind == "Application")
                    .map(Child::from)
                    .collect(),
            },
        }
    }
}

impl From<RawResource> for Child {
    fn from(raw: RawResource) -> Child {
        Child {
            namespace: raw.namespace,
            name: raw.name,
            waits_for_pruning: raw.requires_pruning,
        }
    }
}

/// `revisions` where there are several sources, else `revision`; an empty one says nothing.
fn revisions(one: Option<String>, many: Option<Vec<String>>) -> Vec<String> {
    match many {
        Some(many) if !many.is_empty() => many,
        _ => one.into_iter().filter(|it| !it.is_empty()).collect(),
    }
}

/// Argo CD has no observed generation: what it compared is told by a copy of the sources and the destination beside the
/// result.
fn compared(spec: &Spec, to: Option<&RawCompared>) -> Compared {
    let Some(to) = to else {
        return Compared::Never;
    };
    let sources = |source: &Option<Value>, sources: &Option<Vec<Value>>| match sources {
        Some(sources) if !sources.is_empty() => sources.iter().map(plain).collect(),
        _ => source.iter().map(plain).collect::<Vec<Value>>(),
    };
    let same_sources = sources(&spec.source, &spec.sources) == sources(&to.source, &to.sources);
    let same_destination = to
        .destination
        .as_ref()
        .is_none_or(|destination| plain(destination) == plain(&spec.destination));
    if same_sources && same_destination {
        Compared::AsSet
    } else if to.source.is_none() && to.sources.is_none() {
        Compared::Never
    } else {
        Compared::WithOther
    }
}

/// A value without the members that say nothing: the controller leaves them out where it writes a copy.
fn plain(value: &Value) -> Value {
    let says = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    };
    match value {
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => {
            let mut kept: Vec<(String, Value)> = members
                .iter()
                .map(|(key, value)| (key.clone(), plain(value)))
                .filter(|(_, value)| says(value))
                .collect();
            kept.sort_by(|a, b| a.0.cmp(&b.0));
            kept.into_iter().collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(spec: &str, rest: &str) -> Observed {
        let json = format!(
            r#"{{"metadata": {{"name": "a", "namespace": "argocd", "annotations": {{"argocd.argoproj.io/refresh": "normal"}}}}, "spec": {spec}{rest}}}"#
        );
        Observed::read(&json).unwrap()
    }

    #[test]
    fn what_was_compared_counts_as_it_is_set_whatever_the_controller_leaves_out() {
        let source = r#"{"repoURL": "u", "path": "chart", "helm": {"parameters": [{"name": "a", "value": "1", "forceString": false}], "valueFiles": []}}"#;
        let copy = r#"{"path": "chart", "repoURL": "u", "helm": {"parameters": [{"value": "1", "name": "a"}]}}"#;
        let other = r#"{"path": "chart", "repoURL": "u", "helm": {"parameters": [{"value": "2", "name": "a"}]}}"#;
        let of = |compared: &str| {
            observed(
                &format!(r#"{{"source": {source}, "destination": {{"namespace": "n"}}}}"#),
                &format!(
                    r#", "status": {{"sync": {{"status": "Synced", "comparedTo": {compared}}}}}"#
                ),
            )
            .status
            .compared
        };
        assert_eq!(
            of(&format!(
                r#"{{"source": {copy}, "destination": {{"namespace": "n"}}}}"#
            )),
            Compared::AsSet
        );
        assert_eq!(
            of(&format!(
                r#"{{"source": {copy}, "destination": {{"namespace": "m"}}}}"#
            )),
            Compared::WithOther
        );
        assert_eq!(
            of(&format!(r#"{{"source": {other}}}"#)),
            Compared::WithOther
        );
        assert_eq!(of("{}"), Compared::Never);
        assert_eq!(of("null"), Compared::Never);
    }

    #[test]
    fn an_application_that_was_never_looked_at_has_an_empty_status() {
        let new = observed(r#"{"source": {"repoURL": "u"}}"#, "");
        assert_eq!(new.status, Status::default());
        assert!(new.refresh_is_due);
    }

    #[test]
    fn a_policy_that_is_switched_off_is_none() {
        let of = |automated: &str| {
            observed(
                &format!(r#"{{"source": {{"repoURL": "u"}}, "syncPolicy": {{"automated": {automated}}}}}"#),
                "",
            )
            .automated
        };
        let on = Some(Automated {
            prune: true,
            self_heal: false,
        });
        assert_eq!(of(r#"{"prune": true}"#), on);
        assert_eq!(of(r#"{"prune": true, "enabled": true}"#), on);
        assert_eq!(of(r#"{"prune": true, "enabled": false}"#), None);
        assert_eq!(of("null"), None);
    }

    #[test]
    fn of_several_sources_each_has_its_revision_and_children_are_applications_alone() {
        let json = r#", "operation": {"sync": {}}, "status": {
            "sync": {"status": "OutOfSync", "revision": "x", "revisions": ["1.0", "abc"]},
            "operationState": {"phase": "Succeeded", "message": "ok", "syncResult": {"revision": "abc"}},
            "resources": [
              {"group": "argoproj.io", "kind": "Application", "namespace": "argocd", "name": "b", "requiresPruning": true},
              {"group": "argoproj.io", "kind": "AppProject", "namespace": "argocd", "name": "p"},
              {"kind": "Namespace", "name": "b"}]}"#;
        let status = observed(r#"{"sources": [{"repoURL": "u"}, {"repoURL": "v"}]}"#, json).status;
        assert_eq!(status.revisions, ["1.0", "abc"]);
        assert!(status.sync_is_due);
        let operation = status.operation.unwrap();
        assert_eq!(
            (operation.phase.as_str(), operation.revisions),
            ("Succeeded", vec!["abc".to_owned()])
        );
        let children: Vec<(&str, bool)> = status
            .children
            .iter()
            .map(|c| (c.name.as_str(), c.waits_for_pruning))
            .collect();
        assert_eq!(children, [("b", true)]);
    }
}
