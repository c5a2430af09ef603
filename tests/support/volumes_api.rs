//! As much of an API server as the reattach of PersistentVolumes asks for, on loopback: pages, versions, merge patches, and
//! the refusals that it is told to give.
#![expect(
    clippy::unwrap_used,
    reason = "a panic here fails the test that asked for the server"
)]

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, Response, StatusCode, header};
use serde_json::{Value, json};
use stagewright::cluster::Cluster;
use tokio::net::TcpListener;

const VOLUMES: &str = "/api/v1/persistentvolumes";

/// What somebody else does to a volume.
pub type Change = fn(&mut Value);

/// The server's objects, and how it behaves.
#[derive(Default)]
pub struct Api {
    pub volumes: Vec<Value>,
    /// What others do to a volume just before it is patched, the first one first.
    pub changes: Vec<Change>,
    /// How often what follows a list's first page is forgotten.
    pub expired: usize,
    /// What is refused: a method, a volume's name or none for the list, and the status.
    pub refusals: Vec<(Method, Option<&'static str>, StatusCode)>,
    /// Every request: method, path, and the page that was asked for.
    pub requests: Vec<String>,
    /// How often a volume was changed.
    pub changed: usize,
}

/// The running server. It ends with the runtime that it was started on.
#[derive(Clone)]
pub struct VolumesApi(Arc<Mutex<Api>>);

impl VolumesApi {
    /// Serves these volumes to the cluster that is returned.
    pub async fn serve(api: Api) -> (VolumesApi, Cluster) {
        let server = VolumesApi(Arc::new(Mutex::new(api)));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let config = kube::Config::new(url.parse().unwrap());
        (server, Cluster::from_config(config).unwrap())
    }

    pub fn api(&self) -> MutexGuard<'_, Api> {
        self.0.lock().unwrap()
    }

    /// The volume as it is now.
    pub fn volume(&self, name: &str) -> Value {
        let api = self.api();
        let found = api.volumes.iter().find(|v| v["metadata"]["name"] == name);
        found.unwrap().clone()
    }

    /// The patches that were asked for.
    pub fn patches(&self) -> usize {
        let api = self.api();
        api.requests
            .iter()
            .filter(|r| r.starts_with("PATCH"))
            .count()
    }
}

async fn answer(State(server): State<VolumesApi>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let path = parts.uri.path();
    let query = parts.uri.query().unwrap_or_default();
    let name = path.strip_prefix(VOLUMES).unwrap().strip_prefix('/');
    let mut api = server.api();
    let shown = if query.is_empty() { path } else { query };
    api.requests.push(format!("{} {shown}", parts.method));
    let refused = api
        .refusals
        .iter()
        .find(|(method, of, _)| *method == parts.method && *of == name);
    if let Some((_, _, status)) = refused {
        return failure(*status);
    }
    match (parts.method, name) {
        (Method::GET, None) => api.list(query),
        (Method::GET, Some(name)) => api.get(name),
        (Method::PATCH, Some(name)) => {
            let kind = parts.headers[header::CONTENT_TYPE].to_str().unwrap();
            assert_eq!(kind, "application/merge-patch+json");
            api.patch(name, &serde_json::from_slice(&body).unwrap())
        }
        _ => failure(StatusCode::METHOD_NOT_ALLOWED),
    }
}

impl Api {
    fn list(&mut self, query: &str) -> Response<Body> {
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.parse().unwrap())
        };
        let from: usize = parameter("continue").unwrap_or(0);
        if from > 0 && self.expired > 0 {
            self.expired -= 1;
            return failure(StatusCode::GONE);
        }
        let to = self.volumes.len().min(from + parameter("limit").unwrap());
        let rest = if to < self.volumes.len() {
            to.to_string()
        } else {
            String::new()
        };
        success(&json!({
            "kind": "PersistentVolumeList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "1", "continue": rest},
            "items": self.volumes[from..to],
        }))
    }

    fn get(&self, name: &str) -> Response<Body> {
        match self.volumes.iter().find(|v| v["metadata"]["name"] == name) {
            Some(volume) => success(volume),
            None => failure(StatusCode::NOT_FOUND),
        }
    }

    fn patch(&mut self, name: &str, patch: &Value) -> Response<Body> {
        let Some(at) = self
            .volumes
            .iter()
            .position(|v| v["metadata"]["name"] == name)
        else {
            return failure(StatusCode::NOT_FOUND);
        };
        if !self.changes.is_empty() {
            let change = self.changes.remove(0);
            change(&mut self.volumes[at]);
            self.next_version(at);
        }
        let volume = &mut self.volumes[at];
        if volume.is_null() {
            self.volumes.remove(at);
            return failure(StatusCode::NOT_FOUND);
        }
        if patch["metadata"]["resourceVersion"] != volume["metadata"]["resourceVersion"] {
            return failure(StatusCode::CONFLICT);
        }
        merge(volume, patch);
        self.next_version(at);
        success(&self.volumes[at])
    }

    fn next_version(&mut self, at: usize) {
        self.changed += 1;
        let version = format!("changed-{}", self.changed);
        if let Some(metadata) = self.volumes[at].get_mut("metadata") {
            metadata["resourceVersion"] = version.into();
        }
    }
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let object = target.as_object_mut().unwrap();
    for (name, value) in members {
        if value.is_null() {
            object.remove(name);
        } else {
            merge(object.entry(name).or_insert(Value::Null), value);
        }
    }
}

fn success(value: &Value) -> Response<Body> {
    respond(StatusCode::OK, value)
}

fn failure(status: StatusCode) -> Response<Body> {
    respond(
        status,
        &json!({
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": status.as_u16(),
            "message": format!("the double says {}", status.as_u16()),
            "reason": "Told",
        }),
    )
}

fn respond(status: StatusCode, value: &Value) -> Response<Body> {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(value.to_string()))
        .unwrap()
}
