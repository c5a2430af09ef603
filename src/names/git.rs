//! Names that git gives or takes: branches, commits, and the key under which a state is kept and locked.

use super::{NameError, foreign_character, is_plain, name};

/// A branch's name, without `refs/heads/`.
///
/// The rules are those of `git check-ref-format --branch` (<https://git-scm.com/docs/git-check-ref-format>), which
/// also refuses a leading `-`. Refused beyond them: a name that begins with `refs/`, because the ref would be
/// `refs/heads/refs/…`; 40 hexadecimal digits, which git takes for a commit; and `@`, which git takes for `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BranchName(String);

/// A commit's full object id: 40 lowercase hexadecimal digits (SHA-1, the object format that GitHub serves).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitSha(String);

/// The beginning of a commit's id as a person types it: 7 to 40 hexadecimal digits, kept in lower case.
///
/// Seven is the length to which git itself abbreviates at least
/// (<https://git-scm.com/docs/git-config#Documentation/git-config.txt-coreabbrev>); fewer would be a guess.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitPrefix(String);

/// The path of one Terraform state in the state repository, such as
/// `argocd/PlatformDeploy/headlamp/prd/terraform.tfstate`.
///
/// The key is a relative path that stays in its folder. Since the lock is the branch `locks/<key>`, it is also a
/// valid part of a ref (<https://git-scm.com/docs/git-check-ref-format>): no segment is empty, begins with `.` or ends
/// with `.lock`, none holds `..`, and the key does not end with `.`. A segment has at most 250 characters: git writes
/// `<segment>.lock` beside it, and file systems allow a name 255 bytes. The key has at most 238: GitHub takes branch
/// names of up to 244 bytes (<https://stackoverflow.com/questions/24014361/max-length-of-git-branch-name>), `locks/` among them. No segment begins with `-`,
/// which programs take for an option.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateKey(String);

name!(BranchName, check_branch);
name!(CommitSha, check_sha);
name!(CommitPrefix, check_prefix);
name!(StateKey, check_key);

impl BranchName {
    /// `main`, where the settings name no branch.
    pub fn main() -> Self {
        Self("main".to_owned())
    }
}

impl StateKey {
    /// The folder of the state, with no slash at its end; empty for one at the top.
    pub fn folder(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// The name of its file in that folder.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

impl CommitPrefix {
    /// The commit, when all 40 digits were given.
    pub fn full(&self) -> Option<CommitSha> {
        (self.0.len() == 40).then(|| CommitSha(self.0.clone()))
    }
}

fn check_branch(text: &str) -> Result<String, NameError> {
    match branch_fault(text) {
        Some(part) => Err(NameError::new(
            "branch name",
            text,
            part,
            "it must be a name that `git check-ref-format --branch` takes, without \"refs/heads/\"",
        )),
        None => Ok(text.to_owned()),
    }
}

fn branch_fault(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("being empty".to_owned());
    }
    if let Some(part) = foreign_character(text, |c| {
        !c.is_ascii_control() && !matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    }) {
        return Some(part);
    }
    if text.starts_with('-') {
        return Some("the \"-\" at its beginning".to_owned());
    }
    if text.starts_with("refs/") {
        return Some("the \"refs/\" at its beginning".to_owned());
    }
    if text == "@" || text == "HEAD" {
        return Some("being git's word for the current commit".to_owned());
    }
    if text.len() == 40 && text.chars().all(|c| c.is_ascii_hexdigit()) {
        return Some("being the form of a commit's id".to_owned());
    }
    for sequence in ["..", "@{"] {
        if text.contains(sequence) {
            return Some(format!("the {sequence:?} in it"));
        }
    }
    if text.ends_with('.') {
        return Some("the \".\" at its end".to_owned());
    }
    ref_segment_fault(text)
}

/// What makes a segment of the text impossible in a git ref.
fn ref_segment_fault(text: &str) -> Option<String> {
    text.split('/').find_map(|segment| {
        if segment.is_empty() {
            Some("an empty segment".to_owned())
        } else if segment.starts_with('.') || segment.ends_with(".lock") {
            Some(format!("the segment {segment:?}"))
        } else if segment.len() > 250 {
            Some(format!("a segment of {} characters", segment.len()))
        } else {
            None
        }
    })
}

fn check_sha(text: &str) -> Result<String, NameError> {
    let part = foreign_character(text, |c| matches!(c, '0'..='9' | 'a'..='f'))
        .or_else(|| (text.len() != 40).then(|| format!("its {} characters", text.len())));
    match part {
        Some(part) => Err(NameError::new(
            "commit id",
            text,
            part,
            "it must be 40 of the characters 0-9 and a-f",
        )),
        None => Ok(text.to_owned()),
    }
}

fn check_prefix(text: &str) -> Result<String, NameError> {
    let part = foreign_character(text, |c| c.is_ascii_hexdigit()).or_else(|| {
        (!(7..=40).contains(&text.len())).then(|| format!("its {} characters", text.len()))
    });
    match part {
        Some(part) => Err(NameError::new(
            "commit id",
            text,
            part,
            "it must be 7 to 40 hexadecimal digits; a branch or tag is not taken here",
        )),
        None => Ok(text.to_ascii_lowercase()),
    }
}

fn check_key(text: &str) -> Result<String, NameError> {
    let part = if text.is_empty() {
        Some("being empty".to_owned())
    } else if let Some(part) = foreign_character(text, |c| is_plain(c) || c == '/') {
        Some(part)
    } else if text.ends_with('.') {
        Some("the \".\" at its end".to_owned())
    } else if text.len() > 238 {
        Some(format!("its {} characters", text.len()))
    } else {
        ref_segment_fault(text).or_else(|| {
            text.split('/')
                .find(|segment| segment.contains("..") || segment.starts_with('-'))
                .map(|segment| format!("the segment {segment:?}"))
        })
    };
    match part {
        Some(part) => Err(NameError::new(
            "state key",
            text,
            part,
            "it must be at most 238 characters of segments joined by \"/\", each of letters, digits, \".\", \"_\" and \"-\", not beginning with \".\" or \"-\", not ending with \".lock\" and without \"..\", since the branch that locks the state is named after it",
        )),
        None => Ok(text.to_owned()),
    }
}
