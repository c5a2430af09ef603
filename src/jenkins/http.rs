//! A Jenkins server, by its JSON API (<https://www.jenkins.io/doc/book/using/remote-access-api/>).

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, StatusCode, Url};

use crate::names::JobName;
use crate::settings::{JenkinsAccess, TokenPlace};
use crate::web;

use super::answer::{self, TREE, Told};
use super::{Build, JenkinsError, Job, LARGEST_ARTIFACT};

/// The most bytes of what is said about a job.
const LARGEST_ANSWER: usize = 8 * 1024 * 1024;
/// How often a server that gives no answer of use is asked.
const TRIES: u32 = 3;
/// How many forwardings of an artifact are followed: Jenkins may serve it from a resource root of its own
/// (<https://www.jenkins.io/doc/book/security/user-content/#resource-root-url>).
const FORWARDS: usize = 3;

/// A server and how it lets us in.
pub struct HttpJenkins {
    client: Client,
    /// Without a slash at its end.
    base: String,
    access: Option<(String, String)>,
    patience: Patience,
}

/// The lengths of all waits; a test has shorter ones.
struct Patience {
    /// How long an answer may take in all.
    whole: Duration,
    /// How long a server that gives no answer of use is left alone before the second try.
    pause: Duration,
}

const PATIENCE: Patience = Patience {
    whole: Duration::from_secs(180),
    pause: Duration::from_millis(500),
};

/// One question.
#[derive(Clone, Copy)]
struct Asked<'a> {
    what: &'a str,
    most: usize,
}

impl HttpJenkins {
    pub(super) fn open(
        url: &str,
        access: Option<&JenkinsAccess>,
    ) -> Result<HttpJenkins, JenkinsError> {
        let access = match access {
            Some(access) => Some((access.user.clone(), token(&access.token)?)),
            None => None,
        };
        Ok(HttpJenkins {
            client: web::client().map_err(JenkinsError::Client)?,
            base: url.to_owned(),
            access,
            patience: PATIENCE,
        })
    }

    fn who(&self) -> String {
        let user = self.access.as_ref().map(|(user, _)| user.clone());
        user.unwrap_or_else(|| "who is not logged in".to_owned())
    }

    /// The address of a job, each of its names as one segment.
    fn url(&self, job: &JobName, behind: &[&str], query: Option<&str>) -> Option<Url> {
        let mut url = Url::parse(&self.base).ok()?;
        {
            let mut segments = url.path_segments_mut().ok()?;
            segments.pop_if_empty();
            for item in job.items() {
                segments.extend(["job", item]);
            }
            segments.extend(behind);
        }
        if let Some(tree) = query {
            url.query_pairs_mut().append_pair("tree", tree);
        }
        Some(url)
    }

    fn not_jenkins(&self, what: &str, found: String) -> JenkinsError {
        JenkinsError::NotJenkins {
            place: self.base.clone(),
            what: what.to_owned(),
            found,
        }
    }

    pub(super) async fn job(&self, job: &JobName) -> Result<Job, JenkinsError> {
        let what = &format!("the question for the job {job}");
        let asked = Asked {
            what,
            most: LARGEST_ANSWER,
        };
        let url = self.url(job, &["api", "json"], Some(TREE));
        let url = url.ok_or_else(|| self.not_jenkins(what, "no address at all".to_owned()))?;
        let place = self.base.clone();
        let Some((kind, json)) = self.get(url, asked).await? else {
            return Err(JenkinsError::NoJob {
                place,
                job: job.clone(),
                who: self.who(),
            });
        };
        match answer::read(&json, job) {
            Ok(Told::Job(told)) => Ok(told),
            Ok(Told::Spelled(canonical)) => Err(JenkinsError::OtherSpelling {
                place,
                given: job.clone(),
                canonical,
            }),
            Ok(Told::Other(class)) => Err(JenkinsError::NotAJob {
                place,
                job: job.clone(),
                class,
            }),
            Err(error) => Err(self.not_jenkins(what, format!("{kind}: {error}"))),
        }
    }

    pub(super) async fn artifact(
        &self,
        job: &JobName,
        build: &Build,
        path: &str,
    ) -> Result<Option<Vec<u8>>, JenkinsError> {
        let what = &format!("the question for {path} of build {}", build.number);
        let asked = Asked {
            what,
            most: LARGEST_ARTIFACT,
        };
        let number = build.number.to_string();
        let mut behind = vec![number.as_str(), "artifact"];
        behind.extend(path.split('/'));
        let url = self.url(job, &behind, None);
        let url = url.ok_or_else(|| self.not_jenkins(what, "no address at all".to_owned()))?;
        let answer = self.get(url, asked).await?;
        Ok(answer.map(|(_, content)| content))
    }

    /// The content and its media type; nothing where there is none.
    async fn get(
        &self,
        url: Url,
        asked: Asked<'_>,
    ) -> Result<Option<(String, Vec<u8>)>, JenkinsError> {
        let mut tries = 1;
        loop {
            let error = match self.get_once(url.clone(), asked, tries).await {
                Err(error) if error.is_passing() => error,
                end => return end,
            };
            if tries == TRIES {
                return Err(error);
            }
            tracing::debug!(%error, "asked again");
            tokio::time::sleep(self.patience.pause * tries).await;
            tries += 1;
        }
    }

    async fn get_once(
        &self,
        mut url: Url,
        asked: Asked<'_>,
        tries: u32,
    ) -> Result<Option<(String, Vec<u8>)>, JenkinsError> {
        let no_answer = |source: reqwest::Error| JenkinsError::NoAnswer {
            place: self.base.clone(),
            what: asked.what.to_owned(),
            tries,
            // The address is ours, and one that we were sent to may hold a token.
            source: source.without_url(),
        };
        let mut forwards = 0;
        loop {
            let answer = match self.send(&url).await {
                Ok(answer) => answer,
                Err(error) => {
                    return Err(match web::distrust(url.as_str(), &error) {
                        Some(distrust) => distrust.into(),
                        None => no_answer(error),
                    });
                }
            };
            match self.forward(&url, &answer, asked)? {
                None => {
                    if !self.judge(&answer, asked, tries)? {
                        return Ok(None);
                    }
                    return self.content(answer, asked, no_answer).await.map(Some);
                }
                Some(to) if forwards < FORWARDS => url = to,
                Some(to) => return Err(self.elsewhere(&to, asked)),
            }
            forwards += 1;
        }
    }

    /// The token goes to Jenkins itself alone.
    async fn send(&self, url: &Url) -> Result<Response, reqwest::Error> {
        let mut request = self.client.get(url.clone()).timeout(self.patience.whole);
        let own = Url::parse(&self.base).is_ok_and(|base| base.origin() == url.origin());
        if let Some((user, token)) = self.access.as_ref().filter(|_| own) {
            request = request.basic_auth(user, Some(token));
        }
        request.send().await
    }

    fn elsewhere(&self, to: &Url, asked: Asked<'_>) -> JenkinsError {
        let mut to = to.clone();
        to.set_query(None);
        JenkinsError::Elsewhere {
            place: self.base.clone(),
            to: to.to_string(),
            what: asked.what.to_owned(),
        }
    }

    /// Where the answer sends us. A page to log in on is no answer; and only what was archived may lie elsewhere.
    fn forward(
        &self,
        from: &Url,
        answer: &Response,
        asked: Asked<'_>,
    ) -> Result<Option<Url>, JenkinsError> {
        if !answer.status().is_redirection() {
            return Ok(None);
        }
        let location = answer.headers().get(LOCATION);
        let to = location
            .and_then(|to| to.to_str().ok())
            .and_then(|to| from.join(to).ok());
        let Some(to) = to else {
            let found = format!("{} without an address", answer.status());
            return Err(self.not_jenkins(asked.what, found));
        };
        let own = to.origin() == from.origin();
        let path = to.path().to_ascii_lowercase();
        let logs_in = path.ends_with("/login") || path.contains("/securityrealm/");
        let is_artifact = from.path().contains("/artifact/") || path.contains("/static-files/");
        match () {
            () if logs_in => Err(JenkinsError::NotLoggedIn {
                place: self.base.clone(),
                who: self.who(),
            }),
            () if is_artifact && (own || path.contains("/static-files/")) => Ok(Some(to)),
            () => Err(self.elsewhere(&to, asked)),
        }
    }

    /// Whether there is something.
    fn judge(&self, answer: &Response, asked: Asked<'_>, tries: u32) -> Result<bool, JenkinsError> {
        let place = self.base.clone();
        let what = asked.what.to_owned();
        match answer.status() {
            StatusCode::OK => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            StatusCode::UNAUTHORIZED => Err(JenkinsError::NotAccepted {
                place,
                who: self.who(),
            }),
            // Who is not logged in gets it with a page that leads to the login.
            StatusCode::FORBIDDEN if self.access.is_none() => Err(JenkinsError::NotLoggedIn {
                place,
                who: self.who(),
            }),
            StatusCode::FORBIDDEN => Err(JenkinsError::Forbidden {
                place,
                what,
                who: self.who(),
            }),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(JenkinsError::Status {
                    place,
                    what,
                    status,
                    tries,
                })
            }
            status => Err(self.not_jenkins(asked.what, status.to_string())),
        }
    }

    async fn content(
        &self,
        mut answer: Response,
        asked: Asked<'_>,
        no_answer: impl Fn(reqwest::Error) -> JenkinsError,
    ) -> Result<(String, Vec<u8>), JenkinsError> {
        let kind = answer.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or("no media type").to_owned();
        let mut content = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(&no_answer)? {
            if content.len() + chunk.len() > asked.most {
                return Err(JenkinsError::TooLarge {
                    place: self.base.clone(),
                    what: asked.what.to_owned(),
                    most: asked.most,
                });
            }
            content.extend_from_slice(&chunk);
        }
        Ok((kind, content))
    }
}

fn token(place: &TokenPlace) -> Result<String, JenkinsError> {
    let sound = |text: &str| {
        let text = text.trim();
        let sound = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        sound.then(|| text.to_owned())
    };
    match place {
        TokenPlace::Variable(variable) => {
            let value = std::env::var(variable).unwrap_or_default();
            sound(&value).ok_or_else(|| JenkinsError::NoVariable {
                variable: variable.clone(),
            })
        }
        TokenPlace::File(file) => {
            let text = std::fs::read_to_string(file).map_err(|source| JenkinsError::TokenFile {
                file: file.clone(),
                source,
            })?;
            sound(&text).ok_or_else(|| JenkinsError::NoToken { file: file.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_takes_connections_and_says_nothing_is_left_for_later_after_three_tries()
    {
        // The system takes the connections, and nobody is there to answer.
        let silent = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let mut jenkins = HttpJenkins::open(&url, None).unwrap();
        jenkins.patience = Patience {
            whole: Duration::from_millis(50),
            pause: Duration::from_millis(1),
        };
        let error = jenkins.job(&"AaC/Shop".parse().unwrap()).await.unwrap_err();
        assert!(error.is_passing(), "{error}");
        let told =
            format!("{url} gave no whole answer to the question for the job AaC/Shop, 3 times");
        assert_eq!(error.to_string(), told);
    }
}
