//! The list of live Applications, asked of a double of the API server.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::Ipv4Addr;
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
    let shared = Arc::new(Mutex::new(api));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .fallback(answer)
        .with_state(Arc::clone(&shared));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = kube::Config::new(url.parse().unwrap());
    (shared, Cluster::from_config(config).unwrap())
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
    let read = list(&cluster, &[], 1).await.unwrap();
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
    let read = list(&cluster, &[], 1).await;
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
    let read = list(&cluster, &namespaces, 1).await.unwrap();
    assert_eq!(
        names(&read),
        ["argocd/app-0", "argocd/app-1", "team-a/app-7"]
    );
    api.lock().unwrap().refused = Some(("/team-a/", StatusCode::FORBIDDEN));
    let error = list(&cluster, &namespaces, 1).await.unwrap_err();
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
        let text = one_line(&list(&cluster, &[], 1).await.unwrap_err());
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
