//! The Applications that Helm makes of a registry, and those that we expect of what we read in it.

use std::collections::BTreeMap;

use stagewright::names::RepoUrl;
use stagewright::registry::{App, Registry, Stage};
use stagewright::yaml::{self, Node, Value};

/// What of an Application comes from the registry.
#[derive(Debug, Default, PartialEq, Eq)]
struct Application {
    /// Each source: where it is, what is taken of it, and its revision.
    sources: Vec<[String; 3]>,
    /// Where the stage's values lie.
    value_files: Vec<String>,
    sync_options: Vec<String>,
    automated: bool,
    /// What the hook is told, by name.
    hook: BTreeMap<String, String>,
}

type Applications = BTreeMap<String, Application>;

/// In what Helm's Applications differ from those of our reading.
pub fn difference(registry: &str, made: &str) -> Option<String> {
    let ours = expected(registry);
    let helms = match helms(made) {
        Ok(helms) => helms,
        Err(error) => return Some(format!("{error}\n{made}")),
    };
    (ours != helms).then(|| format!("Helm makes {helms:#?}\nand we read {ours:#?}"))
}

fn expected(registry: &str) -> Applications {
    let registry = Registry::parse(registry, "values.yaml").unwrap();
    assert_eq!(registry.faults(), []);
    let stages = |app: &App| -> Vec<(String, Application)> {
        let named = |stage: &Stage| (format!("{}-{}", app.name, stage.name), of_stage(app, stage));
        app.stages.iter().map(named).collect()
    };
    registry.apps().flat_map(stages).collect()
}

/// What the templates of the estate's chart make.
fn of_stage(app: &App, stage: &Stage) -> Application {
    let repo = app.repo.to_string();
    let path = app.path.as_ref().map(ToString::to_string);
    let folder = path
        .as_ref()
        .map(|path| format!("{path}/"))
        .unwrap_or_default();
    let revision = stage.target_revision.clone().unwrap_or("main".to_owned());
    let chart = [repo.clone(), format!("{folder}chart"), revision.clone()];
    let config = format!("config/{}/values.yaml", stage.name);
    let (sources, value_file) = match (&app.upstream, &stage.version) {
        (Some(upstream), Some(version)) => {
            let upstream = [
                repository(upstream.repo.clone()),
                upstream.chart.clone(),
                version.clone(),
            ];
            let values = [repo.clone(), "values".to_owned(), revision];
            (
                vec![upstream, values, chart],
                format!("$values/{folder}{config}"),
            )
        }
        _ => (vec![chart], format!("../{config}")),
    };
    let mut hook = BTreeMap::from([
        ("hook.repo".to_owned(), repo),
        (
            "hook.revision".to_owned(),
            "$ARGOCD_APP_REVISION".to_owned(),
        ),
        ("hook.stage".to_owned(), stage.name.to_string()),
        (
            "hook.namespace".to_owned(),
            format!("{}-{}", app.name, stage.name),
        ),
    ]);
    hook.extend(path.map(|path| ("hook.path".to_owned(), path)));
    Application {
        sources,
        value_files: vec![value_file],
        sync_options: app.sync_options.clone(),
        automated: stage.auto_sync,
        hook,
    }
}

fn helms(made: &str) -> Result<Applications, String> {
    let documents = made
        .split("\n---\n")
        .map(|text| text.trim_start_matches("---\n"));
    documents
        .filter(|text| !text.trim().is_empty())
        .map(|document| {
            let root = yaml::parse(document)
                .map_err(|error| format!("no YAML is made: {}: {error}", error.place()))?;
            application(&root).ok_or_else(|| format!("something else is made: {document}"))
        })
        .collect()
}

fn application(root: &Node) -> Option<(String, Application)> {
    let spec = root.get("spec")?;
    let mut application = Application::default();
    let one = spec.get("source").into_iter();
    for source in one.chain(items(spec.get("sources"))) {
        let taken = ["path", "chart", "ref"]
            .iter()
            .find_map(|key| source.get(key))?;
        let repo = repository(text(source.get("repoURL")?));
        let revision = text(source.get("targetRevision")?);
        application.sources.push([repo, text(taken), revision]);
        let Some(helm) = source.get("helm") else {
            continue;
        };
        application
            .value_files
            .extend(items(helm.get("valueFiles")).map(text));
        for parameter in items(helm.get("parameters")) {
            let value = parameter.get("value")?;
            let value = match text(parameter.get("name")?) {
                name if name == "hook.repo" => (name, repository(text(value))),
                name => (name, text(value)),
            };
            application.hook.extend([value]);
        }
    }
    if let Some(policy) = spec.get("syncPolicy") {
        application.automated = policy.get("automated").is_some();
        application
            .sync_options
            .extend(items(policy.get("syncOptions")).map(text));
    }
    let name = root.get("metadata")?.get("name")?;
    Some((text(name), application))
}

/// A repository as we keep its address: an absolute path is a `file://` URL.
fn repository(written: String) -> String {
    let url = written.parse::<RepoUrl>();
    url.map_or(written, |url| url.to_string())
}

/// As Argo CD gets it: what is no text there is no text here.
fn text(node: &Node) -> String {
    node.text()
        .map_or_else(|error| format!("({error})"), str::to_owned)
}

fn items(list: Option<&Node>) -> impl Iterator<Item = &Node> {
    let items = match list.map(Node::value) {
        Some(Value::Sequence(items)) => items.as_slice(),
        _ => &[],
    };
    items.iter()
}
