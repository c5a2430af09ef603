//! Whatever else an estate has, a stage with a live Application is never cleared.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::names::AppPath;

const NAMES: [&str; 3] = ["PlatformDeploy", "a", "deploy.v2"];
const PATHS: [&str; 5] = ["", "headlamp", "a", "a/b", "ab"];
const STAGES: [&str; 4] = ["dev", "prd", "de", "a"];

/// The same repository's address in another form.
fn address(repo: &str) -> impl Strategy<Value = String> + use<> {
    let repo = repo.to_owned();
    let base = prop::sample::select(vec![
        "https://github.com/",
        "http://github.com/",
        "HTTPS://GitHub.COM/",
        "https://www.github.com/",
        "https://token@github.com/",
        "https://user:secret@github.com/",
        "ssh://git@github.com/",
        "ssh://org-123@ssh.github.com:443/",
        "git@github.com:",
        "github.com:",
        "github.com/",
        "https://github.com/x/../",
        "https://mirror.example.org/git/",
        "weird::",
    ]);
    let case = prop::bool::ANY;
    let end = prop::sample::select(vec!["", "/", ".git", ".git/", ".GIT"]);
    (base, case, end).prop_map(move |(base, upper, end)| {
        let path = format!("example/{repo}");
        let path = if upper { path.to_uppercase() } else { path };
        format!("{base}{path}{end}")
    })
}

/// Where the hook's parameters stand.
#[derive(Clone, Copy, Debug)]
enum Stands {
    Parameters,
    Object,
    Text,
    /// Nowhere: in a value file of the stage's configuration.
    ConfigFile,
}

/// Which source leads to the repository.
#[derive(Clone, Copy, Debug)]
enum Leading {
    Source,
    SecondSource,
    Reference,
    DrySource,
    HookRepo,
}

fn helm(stands: Stands, hook: &[(&str, &str)]) -> Value {
    let keys: serde_json::Map<String, Value> = hook
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    match stands {
        Stands::Parameters => {
            let parameter = |(name, value): &(&str, &str)| json!({"name": format!("hook.{name}"), "value": value});
            json!({"parameters": hook.iter().map(parameter).collect::<Vec<_>>()})
        }
        Stands::Object => json!({"valuesObject": {"hook": keys}}),
        Stands::Text => json!({"values": json!({"hook": keys, "replicas": 2}).to_string()}),
        Stands::ConfigFile => json!({}),
    }
}

/// The live Application of the target.
fn live(target: &Target, url: &str, leading: Leading, stands: Stands, revision: &str) -> Value {
    let path = target.path.as_ref().map_or("", AppPath::as_str);
    let mut hook = vec![("stage", target.stage.as_str())];
    if !path.is_empty() {
        hook.push(("path", path));
    }
    // By the hook's parameter alone it can be found only where that parameter can be seen.
    let stands = match (leading, stands) {
        (Leading::HookRepo, Stands::ConfigFile) => Stands::Text,
        (_, stands) => stands,
    };
    if matches!(leading, Leading::HookRepo) {
        hook.push(("repo", url));
    }
    let mut helm = helm(stands, &hook);
    let config = Layout::default().config_dir(&target.repo, target.path.as_ref(), &target.stage);
    let chart = if path.is_empty() {
        "chart".to_owned()
    } else {
        format!("{path}/chart")
    };
    let other =
        json!({"repoURL": "https://charts.example.org", "chart": "c", "targetRevision": "1.0.0"});
    if matches!(stands, Stands::ConfigFile) {
        helm["valueFiles"] = match leading {
            Leading::Reference => json!([format!("$values/{config}/values.yaml")]),
            _ => json!([format!("/{config}/values.yaml")]),
        };
    }
    let ours = json!({"repoURL": url, "path": chart, "targetRevision": revision, "helm": helm});
    match leading {
        Leading::Source => json!({"source": ours}),
        Leading::SecondSource => json!({"source": other, "sources": [other, ours]}),
        Leading::Reference => {
            let mut chart = other;
            chart["helm"] = helm;
            json!({"sources": [chart, {"repoURL": url, "ref": "values", "targetRevision": revision}]})
        }
        Leading::DrySource => json!({"sourceHydrator": {"drySource": ours}}),
        Leading::HookRepo => {
            let mut chart = other;
            chart["helm"] = helm;
            json!({"source": chart})
        }
    }
}

fn target() -> impl Strategy<Value = Target> {
    let parts = (
        prop::sample::select(NAMES.to_vec()),
        prop::sample::select(PATHS.to_vec()),
        prop::sample::select(STAGES.to_vec()),
    );
    parts.prop_map(|(repo, path, stage)| Target {
        repo: repo.parse().unwrap(),
        path: path.parse().ok(),
        stage: stage.parse().unwrap(),
    })
}

fn one_of_the_target() -> impl Strategy<Value = (Target, Value)> {
    let leading = prop::sample::select(vec![
        Leading::Source,
        Leading::SecondSource,
        Leading::Reference,
        Leading::DrySource,
        Leading::HookRepo,
    ]);
    let stands = prop::sample::select(vec![
        Stands::Parameters,
        Stands::Object,
        Stands::Text,
        Stands::ConfigFile,
    ]);
    let revision = prop::sample::select(vec!["main", "v1", "HEAD", ""]);
    (target(), leading, stands, revision).prop_flat_map(|(target, leading, stands, revision)| {
        address(target.repo.as_str()).prop_map(move |url| {
            let spec = live(&target, &url, leading, stands, revision);
            (target.clone(), spec)
        })
    })
}

fn read(name: &str, spec: &Value) -> Application {
    let object = json!({"metadata": {"name": name, "namespace": "argocd"}, "spec": spec});
    Application::read(&object.to_string()).unwrap()
}

/// What else there is: Applications of other stages and repositories, in some order.
fn others() -> impl Strategy<Value = Vec<Application>> {
    prop::collection::vec(one_of_the_target(), 0..4).prop_map(|others| {
        let named = |(at, (_, spec)): (usize, &(Target, Value))| read(&format!("other-{at}"), spec);
        others.iter().enumerate().map(named).collect()
    })
}

/// Whether the target is cleared beside these Applications and entries.
fn is_cleared(target: &Target, applications: Vec<Application>, entries: &[Target]) -> bool {
    let base: RepoUrl = "https://github.com/example".parse().unwrap();
    let mut registry = String::from("apps:\n  none: {repo: https://h/o/none, stages: {dev: {}}}\n");
    for (at, entry) in entries.iter().enumerate() {
        let url = base.join(&entry.repo);
        let path = entry
            .path
            .as_ref()
            .map(|path| format!("path: {path}, "))
            .unwrap_or_default();
        let stage = &entry.stage;
        registry.push_str(&format!(
            "  e{at}: {{repo: {url}, {path}stages: {{{stage}: {{}}}}}}\n"
        ));
    }
    let addresses = [base.join(&target.repo)];
    let layout = Layout::default();
    let instances = [Instance {
        name: "it".to_owned(),
        applications,
    }];
    let mut question = Question {
        target,
        addresses: &addresses,
        repo: "example/it",
        registry_place: "the registry",
        layout: &layout,
        looked: &BTreeMap::new(),
        not_deploying: &[],
        asker: Asker::Person,
    };
    let empty = || Looked::Names(Vec::new());
    let looked = places_to_look(&question, &instances);
    let looked = looked.into_iter().map(|look| (look, empty())).collect();
    question.looked = &looked;
    let registry = Registry::parse(&registry, "values.yaml").unwrap();
    judge(&question, &registry, &instances).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_stage_with_a_live_application_is_never_cleared(
        (target, spec) in one_of_the_target(),
        others in others(),
        at in 0..5_usize,
        deleting in prop::bool::ANY,
    ) {
        let mut its_own = read("its-own", &spec);
        its_own.deleting = deleting;
        let mut applications = others;
        applications.insert(at.min(applications.len()), its_own);
        prop_assert!(!is_cleared(&target, applications, &[]), "{target}: {spec:#}");
    }

    #[test]
    fn a_registered_stage_is_never_cleared(
        target in target(),
        mut entries in prop::collection::vec(target(), 0..4),
        others in others(),
        at in 0..5_usize,
    ) {
        entries.insert(at.min(entries.len()), target.clone());
        prop_assert!(!is_cleared(&target, others, &entries));
    }

    /// Else the two above could be kept by a guard that clears nothing.
    #[test]
    fn an_application_that_says_another_stage_or_path_does_not_stand_in_the_way(
        // A name that lies within another one, in an address that is not understood, is in doubt.
        target in target().prop_map(|target| match target.repo.as_str() {
            "a" => Target { repo: "PlatformDeploy".parse().unwrap(), ..target },
            _ => target,
        }),
        (other, spec) in one_of_the_target(),
    ) {
        let is_told = spec.to_string().contains("hook");
        let differs = target.path != other.path || target.stage != other.stage;
        if target.repo != other.repo || (is_told && differs) {
            prop_assert!(is_cleared(&target, vec![read("other", &spec)], &[]), "{target}: {spec:#}");
        }
    }
}
