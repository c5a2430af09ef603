//! Names of the registry and of the Kubernetes objects that its entries become.

use std::fmt;
use std::str::FromStr;

use super::{NameError, RepoName, as_text, foreign_character, is_plain, name};

/// An app's key in the registry: a DNS label of at most 63 characters.
///
/// It begins the names of the app's Application and namespace, and a namespace's name is a DNS label
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names>).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppName(String);

/// A stage's key in the registry, such as `prd`: a DNS label of at most 63 characters.
///
/// It ends the names of the stage's Application and namespace, is a label value
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set>), names a
/// folder below `config/`, and is one segment of the state key and so of the lock's branch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageName(String);

/// A Kubernetes namespace: a DNS label of at most 63 characters
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names>).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(String);

/// An app's directory in its deploy repository: plain segments joined by `/`, at most 200 characters.
///
/// A segment begins with a letter or a digit, so that it is no hidden folder, no option of a program and never `..`.
/// It does not end with `.lock` or `.`, since the path becomes part of the lock's branch
/// (<https://git-scm.com/docs/git-check-ref-format>), and with 200 characters in all, `.lock` added by git
/// still fits the 255 bytes that file systems allow a name. The root of a repository is no path at all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppPath(String);

/// An Argo CD Application, written `<namespace>/<name>`; its name is a DNS subdomain of at most 253 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationName(String);

name!(ApplicationName, check_application_name);
name!(AppName, check_app_name);
name!(StageName, check_stage_name);
name!(Namespace, check_namespace);
name!(AppPath, check_app_path);

fn check_app_name(text: &str) -> Result<String, NameError> {
    dns_label(
        text,
        "app name",
        "it must be 1 to 63 of the characters a-z, 0-9 and -, with no - at either end, since Kubernetes names are made of it",
    )
}

fn check_stage_name(text: &str) -> Result<String, NameError> {
    dns_label(
        text,
        "stage name",
        "it must be 1 to 63 of the characters a-z, 0-9 and -, with no - at either end, since Kubernetes names, a folder and a git branch are made of it",
    )
}

fn check_namespace(text: &str) -> Result<String, NameError> {
    dns_label(
        text,
        "namespace",
        "it must be 1 to 63 of the characters a-z, 0-9 and -, with no - at either end, as Kubernetes demands",
    )
}

fn check_application_name(text: &str) -> Result<String, NameError> {
    let refuse = |part: String| {
        NameError::new(
            "Application",
            text,
            part,
            "it must be written <namespace>/<name>, each of the characters a-z, 0-9 and -, the name also of \".\"",
        )
    };
    let Some((namespace, name)) = text.split_once('/') else {
        return Err(refuse("its missing \"/\"".to_owned()));
    };
    if let Err(error) = check_namespace(namespace) {
        return Err(refuse(format!("its namespace, {}", error.part)));
    }
    let fits = |label: &str| check_namespace(label).is_ok();
    if name.len() > 253 || !name.split('.').all(fits) {
        return Err(refuse(format!("the name {name:?}")));
    }
    Ok(text.to_owned())
}

fn dns_label(text: &str, kind: &'static str, rule: &'static str) -> Result<String, NameError> {
    let part = if text.is_empty() {
        Some("being empty".to_owned())
    } else if let Some(part) = foreign_character(text, |c| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
    }) {
        Some(part)
    } else if text.starts_with('-') {
        Some("the \"-\" at its beginning".to_owned())
    } else if text.ends_with('-') {
        Some("the \"-\" at its end".to_owned())
    } else if text.len() > 63 {
        Some(format!("its {} characters", text.len()))
    } else {
        None
    };
    match part {
        Some(part) => Err(NameError::new(kind, text, part, rule)),
        None => Ok(text.to_owned()),
    }
}

fn check_app_path(text: &str) -> Result<String, NameError> {
    let refuse = |part: String| {
        NameError::new(
            "app path",
            text,
            part,
            "it must be at most 200 characters of segments joined by \"/\", each of letters, digits, \".\", \"_\" and \"-\", beginning with a letter or digit and not ending with \".\" or \".lock\"; leave the path out for an app at the root of its repository",
        )
    };
    if text.is_empty() {
        return Err(refuse("being empty".to_owned()));
    }
    if text.starts_with('/') {
        return Err(refuse("the \"/\" at its beginning".to_owned()));
    }
    if text.ends_with('/') {
        return Err(refuse("the \"/\" at its end".to_owned()));
    }
    for segment in text.split('/') {
        let begins_well = segment
            .chars()
            .next()
            .is_some_and(|c| c.is_ascii_alphanumeric());
        if segment.is_empty() {
            return Err(refuse("an empty segment".to_owned()));
        }
        if segment == "." || segment == ".." {
            return Err(refuse(format!("the segment {segment:?}")));
        }
        if let Some(part) = foreign_character(text, |c| is_plain(c) || c == '/') {
            return Err(refuse(part));
        }
        if !begins_well
            || segment.contains("..")
            || segment.ends_with('.')
            || segment.ends_with(".lock")
        {
            return Err(refuse(format!("the segment {segment:?}")));
        }
    }
    if text.len() > 200 {
        return Err(refuse(format!("its {} characters", text.len())));
    }
    Ok(text.to_owned())
}

/// What a job works on: one stage of the app at one directory of a deploy repository, written
/// `<repo>[/<path>]/<stage>`, such as `PlatformDeploy/headlamp/dev`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The deploy repository.
    pub repo: RepoName,
    /// The app's directory in it; `None` for an app at the root.
    pub path: Option<AppPath>,
    /// The stage.
    pub stage: StageName,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}/{path}/{}", self.repo, self.stage),
            None => write!(f, "{}/{}", self.repo, self.stage),
        }
    }
}

impl FromStr for Target {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let Some((repo, rest)) = text.split_once('/') else {
            return Err(NameError::new(
                "target",
                text,
                "its missing \"/\"".to_owned(),
                "it must be written <repo>/<stage>, or <repo>/<path>/<stage> for an app in a directory",
            ));
        };
        let (path, stage) = match rest.rsplit_once('/') {
            Some((path, stage)) => (Some(path.parse()?), stage),
            None => (None, rest),
        };
        Ok(Self {
            repo: repo.parse()?,
            path,
            stage: stage.parse()?,
        })
    }
}

as_text!(Target);
