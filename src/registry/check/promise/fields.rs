//! An Application as fields with their values: as an entry promises it, and as it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::applications::Source;
use crate::applications::observed::{Automated, GENERATE_PATHS, Observed};
use crate::layout::Layout;
use crate::registry::{App, Stage};

use super::{DEFAULT_BRANCH, Destination, ExpectedApplications, VALUES_FILE};

/// What Argo CD replaces by the commit that it renders
/// (<https://argo-cd.readthedocs.io/en/stable/user-guide/build-environment/>).
const REVISION: &str = "$ARGOCD_APP_REVISION";
/// By this name other sources take value files of the deploy repository.
const VALUES_REFERENCE: &str = "values";

/// Fields of an Application by their paths.
pub(super) type Fields = BTreeMap<String, String>;

/// The fields of the Application that an entry promises.
pub(super) fn wanted(
    app: &App,
    stage: &Stage,
    layout: &Layout,
    expected: &ExpectedApplications,
) -> Fields {
    let mut fields = Fields::new();
    let mut set = |field: &str, value: &str| fields.insert(field.to_owned(), value.to_owned());
    if let Some(path) = &app.path {
        set(&annotation(), &format!("/{path}"));
    }
    if let Some(project) = &expected.project {
        set("spec.project", project);
    }
    match &expected.destination {
        Some(Destination::Server(server)) => {
            set("spec.destination.server", server);
        }
        Some(Destination::Name(name)) => {
            set("spec.destination.name", name);
        }
        None => {}
    }
    if let Ok(namespace) = layout.namespace(&app.name, &stage.name) {
        set("spec.destination.namespace", namespace.as_str());
    }
    if stage.auto_sync {
        policy(
            &mut fields,
            Automated {
                prune: true,
                self_heal: false,
            },
        );
        if let Some(retry) = &expected.retry {
            leaves(
                &mut fields,
                "spec.syncPolicy.retry",
                &Value::Object(retry.clone()),
            );
        }
    }
    options(&mut fields, &app.sync_options);
    let sources = promised_sources(app, stage, layout, expected);
    source_fields(&mut fields, &sources, app.upstream.is_some());
    fields
}

/// The same fields of a live Application.
pub(super) fn found(observed: &Observed, expected: &ExpectedApplications) -> Fields {
    let mut fields = Fields::new();
    let mut set = |field: &str, value: Option<&String>| {
        if let Some(value) = value {
            fields.insert(field.to_owned(), value.clone());
        }
    };
    set(&annotation(), observed.generate_paths.as_ref());
    set(
        "spec.project",
        expected.project.as_ref().map(|_| &observed.project),
    );
    if expected.destination.is_some() {
        set("spec.destination.server", observed.server.as_ref());
        set("spec.destination.name", observed.cluster.as_ref());
    }
    set("spec.destination.namespace", observed.namespace.as_ref());
    if let Some(automated) = observed.automated {
        policy(&mut fields, automated);
    }
    if let (Some(_), Some(retry)) = (&expected.retry, &observed.retry) {
        leaves(&mut fields, "spec.syncPolicy.retry", retry);
    }
    options(&mut fields, &observed.sync_options);
    source_fields(&mut fields, &observed.sources, observed.has_sources);
    fields
}

fn annotation() -> String {
    format!("metadata.annotations[{GENERATE_PATHS}]")
}

fn policy(fields: &mut Fields, automated: Automated) {
    let path = "spec.syncPolicy.automated";
    fields.insert(format!("{path}.prune"), automated.prune.to_string());
    fields.insert(format!("{path}.selfHeal"), automated.self_heal.to_string());
}

/// The order of sync options means nothing.
fn options(fields: &mut Fields, options: &[String]) {
    let options: BTreeSet<&str> = options.iter().map(String::as_str).collect();
    if !options.is_empty() {
        let all: Vec<&str> = options.into_iter().collect();
        fields.insert("spec.syncPolicy.syncOptions".to_owned(), all.join(", "));
    }
}

/// Every member of a value by its path. Numbers and texts of the same spelling are the same, as in YAML made by a template.
fn leaves(fields: &mut Fields, path: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                leaves(fields, &format!("{path}.{key}"), value);
            }
        }
        Value::Null => {}
        Value::String(text) => {
            fields.insert(path.to_owned(), text.clone());
        }
        other => {
            fields.insert(path.to_owned(), other.to_string());
        }
    }
}

/// The sources that an entry promises: the app's chart; with an upstream, that chart, the deploy repository for its values, and
/// the app's companion chart.
fn promised_sources(
    app: &App,
    stage: &Stage,
    layout: &Layout,
    expected: &ExpectedApplications,
) -> Vec<Source> {
    let path = app.path.as_ref();
    // A repository without a name was told by its fault.
    let Ok(repo) = app.repo.repo_name() else {
        return Vec::new();
    };
    let revision = stage.target_revision.as_deref().unwrap_or(DEFAULT_BRANCH);
    let chart = layout.chart_dir(&repo, path);
    let values = format!(
        "{}/{VALUES_FILE}",
        layout.config_dir(&repo, path, &stage.name)
    );
    let mut parameters: BTreeMap<String, Vec<String>> = expected
        .parameters
        .iter()
        .map(|(name, value)| (name.clone(), vec![value.clone()]))
        .collect();
    let hook = layout.hook_parameters();
    let namespace = layout.namespace(&app.name, &stage.name);
    let values_of_hook = [
        (&hook.repo, Some(app.repo.to_string())),
        (&hook.revision, Some(REVISION.to_owned())),
        (&hook.stage, Some(stage.name.to_string())),
        (&hook.namespace, namespace.ok().map(|it| it.to_string())),
        (&hook.path, path.map(ToString::to_string)),
    ];
    for (name, value) in values_of_hook {
        if let Some(value) = value {
            parameters.insert(name.clone(), vec![value]);
        }
    }
    let of_repo = Source {
        repo_url: app.repo.to_string(),
        target_revision: Some(revision.to_owned()),
        ..Source::default()
    };
    let own_chart = Source {
        path: Some(chart.clone()),
        parameters,
        ..of_repo.clone()
    };
    match &app.upstream {
        None => vec![Source {
            value_files: vec![relative(&chart, &values)],
            ..own_chart
        }],
        Some(upstream) => vec![
            Source {
                repo_url: upstream.repo.clone(),
                chart: Some(upstream.chart.clone()),
                target_revision: stage.version.clone(),
                value_files: vec![format!("${VALUES_REFERENCE}/{values}")],
                ..Source::default()
            },
            Source {
                reference: Some(VALUES_REFERENCE.to_owned()),
                ..of_repo
            },
            own_chart,
        ],
    }
}

/// The path of a file as it is written in a folder; both are relative to the same clone.
fn relative(folder: &str, file: &str) -> String {
    let folder: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let file: Vec<&str> = file.split('/').collect();
    let common = folder.iter().zip(&file).take_while(|(a, b)| a == b).count();
    let up = vec![".."; folder.len() - common];
    let down = file.get(common..).unwrap_or_default().to_vec();
    [up, down].concat().join("/")
}

/// The fields of sources, each named by what it is for, so that their order means nothing.
fn source_fields(fields: &mut Fields, sources: &[Source], several: bool) {
    let mut seen = BTreeMap::new();
    for source in sources {
        let role = match source {
            _ if !several => "spec.source".to_owned(),
            Source { chart: Some(_), .. } => "spec.sources[chart]".to_owned(),
            Source { path: Some(_), .. } => "spec.sources[path]".to_owned(),
            Source {
                reference: Some(_), ..
            } => "spec.sources[ref]".to_owned(),
            _ => "spec.sources[other]".to_owned(),
        };
        let before = seen.entry(role.clone()).or_insert(0);
        *before += 1;
        let role = match *before {
            1 => role,
            again => format!("{role}#{again}"),
        };
        let mut set = |field: &str, value: String| fields.insert(format!("{role}.{field}"), value);
        set("repoURL", source.repo_url.clone());
        let texts = [
            ("path", &source.path),
            ("chart", &source.chart),
            ("targetRevision", &source.target_revision),
            ("ref", &source.reference),
            ("helm.values", &source.values),
            ("helm.valuesObject", &source.values_object),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                set(field, text.clone());
            }
        }
        if !source.value_files.is_empty() {
            set("helm.valueFiles", source.value_files.join(", "));
        }
        for (name, values) in &source.parameters {
            set(&format!("helm.parameters[{name}]"), values.join(", "));
        }
        for (name, file) in &source.file_parameters {
            set(&format!("helm.fileParameters[{name}]"), file.clone());
        }
        if !source.other_texts.is_empty() {
            set("…", source.other_texts.join(", "));
        }
    }
}
