//! One request to GitHub's REST API, until it has an answer of use.

use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use octocrab::Octocrab;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::{report, web};

use super::answer::Answer;
use super::error::{GitHubError, Said, Unanswered};
use super::limits::{Limit, Patience, TRIES, Waits, limit_of};
use super::token::{Access, AppKey, Installed, Secret};

/// The version of the API that all of this is written for (<https://docs.github.com/en/rest/about-the-rest-api/api-versions>).
const VERSION: &str = "2022-11-28";
/// How many forwardings of a read are followed: a repository may have been renamed more than once.
const FORWARDS: usize = 3;

/// How many pages of a list are read.
const PAGES: usize = 1_000;

/// GitHub's REST API.
pub(super) struct Api {
    client: Octocrab,
    /// Without a slash at its end.
    base: String,
    access: Access,
    installed: Mutex<Option<Installed>>,
    pub(super) patience: Patience,
}

/// What may be done about a request that had no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsure {
    /// It may be sent again: it reads, or what it makes is named after its content and reached from nowhere yet.
    SendAgain,
    /// It may have been carried out: who sent it looks.
    Tell,
}

/// The form of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    /// The bytes of a blob themselves (<https://docs.github.com/en/rest/git/blobs#get-a-blob>).
    Raw,
}

impl Form {
    fn media_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Form::Json => "application/vnd.github+json",
            Form::Raw => "application/vnd.github.raw+json",
        })
    }
}

/// What is asked.
struct Asked<'a> {
    method: Method,
    /// From the API's address on, beginning with a slash.
    path: String,
    body: Option<&'a Value>,
    form: Form,
}

impl Asked<'_> {
    fn name(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{} {path}", self.method)
    }
}

impl Api {
    pub(super) fn new(base: &str, access: Access, patience: Patience) -> Result<Api, GitHubError> {
        let failed = |source| GitHubError::Client {
            api: base.to_owned(),
            source,
        };
        let client = web::client().map_err(|error| failed(error.into()))?;
        let builder = Octocrab::builder()
            .base_uri(base)
            .map_err(|error| failed(error.into()))?;
        let client = builder
            .build_with_reqwest(client)
            .map_err(|error| failed(error.into()))?;
        Ok(Api {
            client,
            base: base.trim_end_matches('/').to_owned(),
            access,
            installed: Mutex::new(None),
            patience,
        })
    }

    /// Whether commits are made in the App's name, and signed by GitHub, when none is sent.
    pub(super) fn is_app(&self) -> bool {
        matches!(self.access, Access::App(_))
    }

    /// Whether the App's installation may write files; `None`: we are no App.
    pub(super) async fn app_may_write(&self) -> Result<Option<bool>, GitHubError> {
        match &self.access {
            Access::Token(_) => Ok(None),
            Access::App(key) => Ok(Some(self.installed(key).await?.may_write)),
        }
    }

    /// Reads.
    pub(super) async fn get(&self, path: String, form: Form) -> Result<Answer, GitHubError> {
        let mut asked = Asked {
            method: Method::GET,
            path,
            body: None,
            form,
        };
        for _ in 0..=FORWARDS {
            let answer = self.ask(&asked, Unsure::SendAgain).await?;
            match self.forward(&answer) {
                Some(Ok(path)) => asked.path = path,
                Some(Err(elsewhere)) => return Err(GitHubError::Renamed { to: elsewhere }),
                None => return Ok(answer),
            }
        }
        Err(GitHubError::Renamed { to: asked.path })
    }

    /// Reads a list to its last page. `None`: the answer to the first page is `nothing`.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: String,
        nothing: StatusCode,
    ) -> Result<Option<Vec<T>>, GitHubError> {
        let mut next = Some(path);
        let mut all = Vec::new();
        for _ in 0..PAGES {
            let Some(path) = next else { break };
            let request = format!("GET {path}");
            let answer = self.get(path, Form::Json).await?;
            if answer.status == nothing && all.is_empty() {
                return Ok(None);
            }
            all.extend(answer.content::<Vec<T>>(&request)?);
            next = match answer.next_page() {
                None => return Ok(Some(all)),
                Some(to) => Some(self.path_of(to).ok_or_else(|| GitHubError::Elsewhere {
                    request,
                    to: to.to_owned(),
                })?),
            };
        }
        Err(GitHubError::TooLarge {
            what: "the list".to_owned(),
            holds: "pages",
            most: PAGES,
        })
    }

    /// Writes. A forwarding is not followed: what was meant for one repository is written to no other.
    pub(super) async fn write(
        &self,
        method: Method,
        path: String,
        body: Option<&Value>,
        unsure: Unsure,
    ) -> Result<Answer, GitHubError> {
        let asked = Asked {
            method,
            path,
            body,
            form: Form::Json,
        };
        let answer = self.ask(&asked, unsure).await?;
        match self.forward(&answer) {
            Some(Ok(to) | Err(to)) => Err(GitHubError::Renamed { to }),
            None => Ok(answer),
        }
    }

    /// Where the answer sends us: a path of this API, or an address elsewhere.
    fn forward(&self, answer: &Answer) -> Option<Result<String, String>> {
        if !answer.status.is_redirection() || answer.status == StatusCode::NOT_MODIFIED {
            return None;
        }
        let location = answer.header(LOCATION.as_str()).unwrap_or_default();
        Some(self.path_of(location).ok_or_else(|| location.to_owned()))
    }

    /// The path of an address of this API.
    fn path_of(&self, address: &str) -> Option<String> {
        let path = address.strip_prefix(&self.base).unwrap_or(address);
        (path.starts_with('/') && !path.starts_with("//")).then(|| path.to_owned())
    }

    /// An answer that is no limit and no fault of the server, after the waits that it takes.
    async fn ask(&self, asked: &Asked<'_>, unsure: Unsure) -> Result<Answer, GitHubError> {
        let token = match &self.access {
            Access::Token(token) => token.clone(),
            Access::App(key) => self.installed(key).await?.token,
        };
        self.ask_as(asked, &token, unsure).await
    }

    async fn ask_as(
        &self,
        asked: &Asked<'_>,
        token: &Secret,
        unsure: Unsure,
    ) -> Result<Answer, GitHubError> {
        let mut waits = Waits::new(self.patience);
        loop {
            let unanswered = match self.once(asked, token).await {
                Ok(answer) if answer.status.is_server_error() => Unanswered::Status(answer.status),
                Ok(answer) => match limit_of(&answer, since_1970()) {
                    Limit::None => return Ok(answer),
                    limit => {
                        self.wait_out(limit, &answer, &mut waits).await?;
                        continue;
                    }
                },
                Err(error) => match web::distrust(&self.base, &*error) {
                    Some(distrust) => return Err(distrust.into()),
                    None => Unanswered::Connection(error),
                },
            };
            let wait = match unsure {
                Unsure::SendAgain => waits.for_fault(),
                Unsure::Tell => None,
            };
            let Some(wait) = wait else {
                return Err(GitHubError::Unanswered {
                    request: asked.name(),
                    tries: match unsure {
                        Unsure::SendAgain => TRIES,
                        Unsure::Tell => 1,
                    },
                    source: unanswered,
                });
            };
            tracing::debug!(request = asked.name(), ?unanswered, ?wait, "asked again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn wait_out(
        &self,
        limit: Limit,
        answer: &Answer,
        waits: &mut Waits,
    ) -> Result<(), GitHubError> {
        let (seconds, which) = match limit {
            Limit::None => return Ok(()),
            Limit::Primary(seconds) => (Some(seconds), "rate limit"),
            Limit::Secondary(seconds) => (seconds, "secondary rate limit"),
        };
        let wait = waits
            .for_limit(seconds)
            .map_err(|wait| GitHubError::Limited {
                wait,
                bound: self.patience.bound(),
                said: answer.said(),
            })?;
        report::note(format_args!(
            "GitHub's {which} is reached: waiting {} s",
            wait.as_secs_f64().ceil()
        ));
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Sends it once.
    async fn once(
        &self,
        asked: &Asked<'_>,
        token: &Secret,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.reveal()))?;
        bearer.set_sensitive(true);
        let mut request = Request::builder()
            .method(&asked.method)
            .uri(&asked.path)
            .header(ACCEPT, asked.form.media_type())
            .header("x-github-api-version", VERSION)
            .header(
                USER_AGENT,
                concat!("stagewright/", env!("CARGO_PKG_VERSION")),
            )
            .header(AUTHORIZATION, bearer);
        let body = match asked.body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                body.to_string()
            }
            None => String::new(),
        };
        let request = request.body(body)?;
        let (head, body) = self.client.execute(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    /// The token of the App's installation, a new one when the last is nearly over.
    async fn installed(&self, key: &AppKey) -> Result<Installed, GitHubError> {
        let mut kept = self.installed.lock().await;
        if let Some(installed) = kept.as_ref().filter(|i| i.holds(SystemTime::now())) {
            return Ok(installed.clone());
        }
        let asked = Asked {
            method: Method::POST,
            path: format!("/app/installations/{}/access_tokens", key.installation),
            body: None,
            form: Form::Json,
        };
        let proof = key.proof(SystemTime::now())?;
        // A token that is made twice harms nobody.
        let answer = self.ask_as(&asked, &proof, Unsure::SendAgain).await?;
        let handed: Handed = answer.content(&asked.name())?;
        let Some(token) = Secret::parse(&handed.token) else {
            let said = Said("a token that is none".to_owned());
            return Err(GitHubError::Unauthorized(said));
        };
        let may_write = handed.permissions.contents.as_deref() == Some("write");
        let installed = Installed::new(token, &handed.expires_at, may_write);
        Ok(kept.insert(installed).clone())
    }
}

/// A token as it is handed out for an installation (the schema `installation-token`).
#[derive(Deserialize)]
struct Handed {
    token: String,
    expires_at: String,
    #[serde(default)]
    permissions: Permissions,
}

#[derive(Default, Deserialize)]
struct Permissions {
    contents: Option<String>,
}

fn since_1970() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
