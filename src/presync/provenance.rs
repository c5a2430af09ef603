//! Who this run is, as the state repository's commits and locks say it.

use std::path::Path;

use crate::git::write::Author;
use crate::names::CommitSha;
use crate::state_backend::provenance::Provenance;
use crate::transport::request::{BUILD_URL, JOB_UID, POD_NAME, POD_NAMESPACE, STATE_AUTHOR};

use super::environment::{EnvironmentError, variable};

/// Where Kubernetes tells a pod its namespace
/// (<https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/>).
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The author that the variable names, as `Name <address>`; else the hook's own, at this pod or host.
pub fn author() -> Result<Author, EnvironmentError> {
    let named = named_author(STATE_AUTHOR)?;
    Ok(named.unwrap_or_else(|| Author {
        name: "argocd-hook".to_owned(),
        email: format!("argocd-hook@{}", host()),
    }))
}

/// The author that a variable names, as `Name <address>`; none where it is unset or empty.
pub fn named_author(name: &'static str) -> Result<Option<Author>, EnvironmentError> {
    let Some(text) = variable(name) else {
        return Ok(None);
    };
    match parse_author(&text) {
        Some(author) => Ok(Some(author)),
        None => Err(EnvironmentError::Author {
            variable: name,
            value: text,
        }),
    }
}

/// Names the author of a job's own commits, as `Name <address>`.
pub const COMMIT_AUTHOR: &str = "STAGEWRIGHT_COMMIT_AUTHOR";

/// Who a job's own commit is by: as the variable says, else this program at this host.
pub fn commit_author() -> Result<Author, EnvironmentError> {
    let named = named_author(COMMIT_AUTHOR)?;
    Ok(named.unwrap_or_else(|| Author {
        name: "stagewright".to_owned(),
        email: format!("stagewright@{}", host()),
    }))
}

/// Who asks for what a job does: whoever was named, else the build, else the user at this host.
pub fn requester(named: Option<&str>, build: Option<String>) -> String {
    let plain = |who: &str| who.chars().filter(|c| !c.is_control()).collect();
    named.map(plain).or(build).unwrap_or_else(|| {
        let user = std::env::var("USER").ok().filter(|user| !user.is_empty());
        let host = host();
        user.map_or(host.clone(), |user| format!("{user}@{host}"))
    })
}

fn parse_author(text: &str) -> Option<Author> {
    let (name, rest) = text.trim().split_once('<')?;
    let (name, email) = (name.trim(), rest.strip_suffix('>')?.trim());
    let plain = |text: &str| {
        !text.is_empty() && !text.contains(['<', '>']) && !text.chars().any(char::is_control)
    };
    (plain(name) && plain(email) && !email.contains(' ')).then(|| Author {
        name: name.to_owned(),
        email: email.to_owned(),
    })
}

/// What is known of this run; `deploy_commit` is what it applies.
pub fn provenance(deploy_commit: Option<CommitSha>) -> Provenance {
    let in_a_pod = variable("KUBERNETES_SERVICE_HOST").is_some();
    let namespace = variable(POD_NAMESPACE).or_else(|| {
        let namespace = std::fs::read_to_string(Path::new(NAMESPACE_FILE)).ok()?;
        Some(namespace.trim().to_owned())
    });
    let pod = variable(POD_NAME).or_else(|| in_a_pod.then(host));
    Provenance {
        deploy_commit,
        build: variable(BUILD_URL).map(|url| without_credentials(&url)),
        pod: pod.map(|pod| match namespace {
            Some(namespace) => format!("{namespace}/{pod}"),
            None => pod,
        }),
        job: variable(JOB_UID),
    }
}

/// The most that is kept of a build's address.
const LONGEST_URL: usize = 1000;

/// A URL without a user and password, which may stand in a build server's own.
pub fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let separator = if scheme.is_empty() { "" } else { "://" };
    let plain = format!("{scheme}{separator}{host}{path}");
    plain
        .chars()
        .filter(|c| !c.is_control())
        .take(LONGEST_URL)
        .collect()
}

/// The host's name, which in a pod is the pod's.
pub fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_build_is_kept_without_credentials() {
        for (given, kept) in [
            (
                "https://ci.example.com/job/a/7/",
                "https://ci.example.com/job/a/7/",
            ),
            (
                "https://me:pw@ci.example.com/job/a@b/",
                "https://ci.example.com/job/a@b/",
            ),
            ("build 7", "build 7"),
        ] {
            assert_eq!(without_credentials(given), kept);
        }
        assert_eq!(without_credentials(&"x".repeat(70_000)).len(), 1000);
    }

    #[test]
    fn an_author_is_a_name_and_an_address_in_angle_brackets() {
        let author = parse_author("Argo CD hook <hook@example.org>").unwrap();
        assert_eq!(
            (author.name.as_str(), author.email.as_str()),
            ("Argo CD hook", "hook@example.org")
        );
        for text in [
            "",
            "hook",
            "<a@b>",
            "hook <>",
            "hook <a@b",
            "a\nb <c@d>",
            "a <b <c>>",
        ] {
            assert!(parse_author(text).is_none(), "{text}");
        }
    }
}
