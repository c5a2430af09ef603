//! The list of live Applications, asked of a double of the API server.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use stagewright::applications::Application;
use stagewright::cluster::Cluster;
use stagewright::cluster::applications::{ApplicationsError, list};
use stagewright::names::Namespace;
use stagewright::report::one_line;
use stagewright::sandbox::{Reset, Sandbox};
use tokio::net::TcpListener;

/// What the server has, and how it behaves.
#[derive(Default)]
struct Api {
    applications: Vec<Value>,
    /// How often what follows a first page is forgotten.
    expired: usize,
    /// The paths that answer with this status.
    refused: Option<(&'static str, StatusCode)>,
    requests: Vec<String>,
}

type Shared = Arc<Mutex<Api>>;

async fn serve(api: Api) -> (Shared, Cluster) {
    let (shared, url) = listen(api).await;
    let config = kube::Config::new(url.parse().unwrap());
    (shared, Cluster::from_config(config).unwrap())
}

/// The same by its address, for a program of its own.
async fn serve_at(applications: Vec<Value>) -> (Shared, String) {
    let api = Api {
        applications,
        ..Api::default()
    };
    listen(api).await
}

async fn listen(api: Api) -> (Shared, String) {
    let shared = Arc::new(Mutex::new(api));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .fallback(answer)
        .with_state(Arc::clone(&shared));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (shared, url)
}

async fn answer(State(api): State<Shared>, request: Request) -> Response {
    let mut api = api.lock().unwrap();
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    api.requests.push(format!("{path}?{query}"));
    if let Some((refused, status)) = api.refused
        && path.contains(refused)
    {
        return failure(status);
    }
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.parse::<usize>().unwrap())
    };
    assert_eq!(parameter("resourceVersion"), None);
    let namespace = path
        .strip_prefix("/apis/argoproj.io/v1alpha1/namespaces/")
        .and_then(|rest| rest.split_once('/'))
        .map(|(namespace, _)| namespace.to_owned());
    let from = parameter("continue").unwrap_or(0);
    if from > 0 && api.expired > 0 {
        api.expired -= 1;
        return failure(StatusCode::GONE);
    }
    let here: Vec<&Value> = api
        .applications
        .iter()
        .filter(|application| {
            namespace
                .as_ref()
                .is_none_or(|namespace| application["metadata"]["namespace"] == **namespace)
        })
        .collect();
    let to = here.len().min(from + parameter("limit").unwrap());
    let rest = if to < here.len() {
        to.to_string()
    } else {
        String::new()
    };
    let page = json!({
        "kind": "ApplicationList",
        "apiVersion": "argoproj.io/v1alpha1",
        "metadata": { "resourceVersion": "1", "continue": rest },
        "items": here[from..to],
    });
    (
        [(header::CONTENT_TYPE, "application/json")],
        page.to_string(),
    )
        .into_response()
}

fn failure(status: StatusCode) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status.as_u16(),
        "message": format!("the server says {status}"), "reason": "x",
        "metadata": { "continue": "an inconsistent token" },
    });
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        body.to_string(),
    )
        .into_response()
}

fn application(namespace: &str, number: usize) -> Value {
    json!({
        "metadata": { "name": format!("app-{number}"), "namespace": namespace },
        "spec": { "source": { "repoURL": "https://github.com/example/FieldnotesDeploy.git", "path": "chart" } },
        "status": { "history": ["x".repeat(100)] },
    })
}

fn many(count: usize) -> Vec<Value> {
    (0..count)
        .map(|number| application("argocd", number))
        .collect()
}

fn names(applications: &[Application]) -> Vec<String> {
    applications.iter().map(Application::full_name).collect()
}

#[tokio::test]
async fn all_pages_are_read_and_a_list_that_the_server_forgets_is_begun_anew() {
    let (api, cluster) = serve(Api {
        applications: many(250),
        expired: 2,
        ..Api::default()
    })
    .await;
    let read = list(&cluster, &[], 1, Application::read).await.unwrap();
    assert_eq!(read.len(), 250);
    assert_eq!(names(&read).last().unwrap(), "argocd/app-249");
    // Two broken off after their first pages, and a whole one of three.
    assert_eq!(api.lock().unwrap().requests.len(), 2 * 2 + 3);
}

#[tokio::test]
async fn a_list_that_is_forgotten_again_and_again_is_an_error_and_no_shorter_list() {
    let (_api, cluster) = serve(Api {
        applications: many(250),
        expired: 100,
        ..Api::default()
    })
    .await;
    let read = list(&cluster, &[], 1, Application::read).await;
    assert!(matches!(read, Err(ApplicationsError::Expired { .. })));
}

#[tokio::test]
async fn only_the_named_namespaces_are_asked_and_each_must_answer() {
    let mut applications = many(2);
    applications.push(application("team-a", 7));
    applications.push(application("team-b", 8));
    let (api, cluster) = serve(Api {
        applications,
        ..Api::default()
    })
    .await;
    let namespaces: Vec<Namespace> = ["argocd", "team-a"]
        .map(|name| name.parse().unwrap())
        .into();
    let read = list(&cluster, &namespaces, 1, Application::read)
        .await
        .unwrap();
    assert_eq!(
        names(&read),
        ["argocd/app-0", "argocd/app-1", "team-a/app-7"]
    );
    api.lock().unwrap().refused = Some(("/team-a/", StatusCode::FORBIDDEN));
    let error = list(&cluster, &namespaces, 1, Application::read)
        .await
        .unwrap_err();
    let text = one_line(&error);
    assert!(
        text.contains("may not list the Applications of team-a")
            && text.contains("the server says 403"),
        "{text}"
    );
}

#[tokio::test]
async fn what_cannot_be_read_whole_is_never_an_empty_list() {
    let expect = async |api: Api, words: &str| {
        let (_api, cluster) = serve(api).await;
        let text = one_line(&list(&cluster, &[], 1, Application::read).await.unwrap_err());
        assert!(text.contains(words), "{words}: {text}");
    };
    expect(
        Api::default(),
        "only 0 Applications were found, and at least 1 are expected",
    )
    .await;
    let refused = |status| Api {
        applications: many(3),
        refused: Some(("applications", status)),
        ..Api::default()
    };
    expect(
        refused(StatusCode::NOT_FOUND),
        "the cluster has no Applications at all",
    )
    .await;
    expect(refused(StatusCode::FORBIDDEN), "the whole cluster").await;
    expect(refused(StatusCode::BAD_REQUEST), "could not be listed").await;
    let mut odd = many(120);
    odd[110] =
        json!({ "metadata": { "name": "odd", "namespace": "argocd" }, "spec": { "source": {} } });
    let odd = Api {
        applications: odd,
        ..Api::default()
    };
    expect(odd, "the Application argocd/odd could not be read").await;
}

/// Runs the check of `FieldnotesDeploy/demo` in the sandbox's repositories, with one Argo CD at each of these addresses, and
/// gives its code and what it said.
fn check_with(instances: &[(&str, &str)]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sandbox = Sandbox::open(&folder.join("sandbox"), Reset::Keep).unwrap();
    let mut settings = format!(
        "forge: {{git: {{root: {}/git, known_as: https://github.com/example}}}}\nregistry: {{repo: ArgoCDDeploy}}\n\
         state: {{repo: TerraformState}}\nrunner: local\napplications:\n  instances:\n",
        sandbox.root().display()
    );
    let mut kubeconfig =
        json!({ "apiVersion": "v1", "kind": "Config", "users": [{ "name": "u", "user": {} }] });
    let mut contexts = Vec::new();
    let mut clusters = Vec::new();
    for (at, (url, keys)) in instances.iter().enumerate() {
        let name = format!("c{at}");
        settings.push_str(&format!("    - {{context: {name}{keys}}}\n"));
        contexts.push(json!({ "name": name, "context": { "cluster": name, "user": "u" } }));
        clusters.push(json!({ "name": name, "cluster": { "server": url } }));
    }
    kubeconfig["contexts"] = json!(contexts);
    kubeconfig["clusters"] = json!(clusters);
    std::fs::write(folder.join("stagewright.yaml"), settings).unwrap();
    std::fs::write(folder.join("kubeconfig"), kubeconfig.to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_stagewright-destroy-stage"))
        .args(["check", "--repo", "FieldnotesDeploy", "--stage", "demo"])
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder)
        .env("KUBECONFIG", folder.join("kubeconfig"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), said)
}

fn of_the_stage(namespace: &str) -> Value {
    let mut application = application(namespace, 1000);
    application["spec"]["source"]["helm"] =
        json!({ "parameters": [{ "name": "hook.stage", "value": "demo" }] });
    application
}

/// As Argo CD has them: each with a stage of its own.
fn of_other_stages(count: usize) -> Vec<Value> {
    let mut applications = many(count);
    for application in &mut applications {
        application["spec"]["source"]["helm"] =
            json!({ "parameters": [{ "name": "hook.stage", "value": "prd" }] });
    }
    applications
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stage_is_looked_for_in_every_argo_cd_of_the_settings() {
    let (first, one) = serve_at(of_other_stages(150)).await;
    let (_second, two) = serve_at(of_other_stages(30)).await;
    let both = [
        (one.as_str(), ", namespaces: [argocd, team-a], minimum: 150"),
        (two.as_str(), ", minimum: 30"),
    ];
    let (code, said) = check_with(&both);
    assert_eq!(code, 0, "{said}");
    let counts = "\napplications 180 Applications in 2 instances, 0 match, 0 unproven\n";
    assert!(said.contains(counts), "{said}");
    let whose = "\nargo cd      the context c0, argocd and team-a: 150 Application(s)\n";
    assert!(said.contains(whose), "{said}");

    first
        .lock()
        .unwrap()
        .applications
        .push(of_the_stage("team-a"));
    let (code, said) = check_with(&both);
    assert_eq!(code, 3, "{said}");
    let by =
        "by the live Application team-a/app-1000 of the context c0, argocd and team-a. This run";
    assert!(said.contains(by), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_argo_cd_that_is_not_read_whole_ends_the_check() {
    let (_first, one) = serve_at(of_other_stages(5)).await;
    let (second, two) = serve_at(of_other_stages(30)).await;
    let check = |keys: &str| check_with(&[(one.as_str(), ""), (two.as_str(), keys)]);
    let (code, said) = check(", minimum: 31");
    assert_eq!(code, 1, "{said}");
    let words = "the live Applications of the context c1 could not be read\n  because: only 30 Applications were found, and at \
                 least 31 are expected";
    assert!(said.contains(words), "{said}");
    let refused = |status| second.lock().unwrap().refused = Some(("applications", status));
    for (status, expected) in [
        (StatusCode::FORBIDDEN, 1),
        (StatusCode::NOT_FOUND, 1),
        (StatusCode::INTERNAL_SERVER_ERROR, 10),
    ] {
        refused(status);
        let (code, said) = check("");
        assert_eq!(code, expected, "{said}");
        assert!(!said.contains("0 match"), "{said}");
    }
}
