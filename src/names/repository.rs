//! Names of repositories and of their owners.

use super::{NameError, foreign_character, is_plain, name};

/// A repository's name without its owner.
///
/// GitHub allows 1 to 100 of `A-Z a-z 0-9 . _ -` and strips `.git` from the end
/// (<https://docs.github.com/en/repositories/creating-and-managing-repositories/creating-a-new-repository>).
/// Since the name is also a segment of the state key, and so of the branch that is the state's lock, it does not begin
/// with `.`, end with `.lock` or `.`, or hold `..` (<https://git-scm.com/docs/git-check-ref-format>). It does
/// not begin with `-`, which programs take for an option.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoName(String);

/// The account on GitHub that owns repositories.
///
/// GitHub's logins are 1 to 39 letters and digits with single `-` between them
/// (<https://docs.github.com/en/enterprise-cloud@latest/admin/managing-iam/iam-configuration-reference/username-considerations-for-external-authentication>).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerName(String);

name!(RepoName, check_repo);
name!(OwnerName, check_owner);

fn check_repo(text: &str) -> Result<String, NameError> {
    let part = if text.is_empty() {
        Some("being empty".to_owned())
    } else if let Some(part) = foreign_character(text, is_plain) {
        Some(part)
    } else if text == "." || text == ".." {
        Some(format!("the segment {text:?}"))
    } else if text.starts_with(['.', '-']) {
        Some(format!("the {:?} at its beginning", &text[..1]))
    } else if text.contains("..") {
        Some("the \"..\" in it".to_owned())
    } else if text.to_ascii_lowercase().ends_with(".git") {
        Some("the \".git\" at its end".to_owned())
    } else if text.ends_with(".lock") {
        Some("the \".lock\" at its end".to_owned())
    } else if text.ends_with('.') {
        Some("the \".\" at its end".to_owned())
    } else if text.len() > 100 {
        Some(format!("its {} characters", text.len()))
    } else {
        None
    };
    match part {
        Some(part) => Err(NameError::new(
            "repository name",
            text,
            part,
            "it must be the name alone, without owner and \".git\": 1 to 100 letters, digits, \".\", \"_\" and \"-\", not beginning with \".\" or \"-\", without \"..\", and not ending with \".\" or \".lock\", since a git branch is made of it",
        )),
        None => Ok(text.to_owned()),
    }
}

fn check_owner(text: &str) -> Result<String, NameError> {
    let part = if text.is_empty() {
        Some("being empty".to_owned())
    } else if let Some(part) = foreign_character(text, |c| c.is_ascii_alphanumeric() || c == '-') {
        Some(part)
    } else if text.starts_with('-') {
        Some("the \"-\" at its beginning".to_owned())
    } else if text.ends_with('-') {
        Some("the \"-\" at its end".to_owned())
    } else if text.contains("--") {
        Some("the \"--\" in it".to_owned())
    } else if text.len() > 39 {
        Some(format!("its {} characters", text.len()))
    } else {
        None
    };
    match part {
        Some(part) => Err(NameError::new(
            "owner name",
            text,
            part,
            "it must be 1 to 39 letters and digits with single \"-\" between them, as GitHub's logins are",
        )),
        None => Ok(text.to_owned()),
    }
}
