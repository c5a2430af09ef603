//! The change as a value: the file's new text, and the commit's message.

use crate::git::trailers;
use crate::producers::edit::{Edit, EditError, add, remove, repoint};

use super::judge::Artifact;
use super::{Change, Wanted};

/// What the file becomes.
pub(super) fn draw(change: &Change, text: &str, file: &str) -> Result<Edit, EditError> {
    match change {
        Change::Register(producer) => add(text, file, producer),
        Change::Repoint(producer) => repoint(text, file, producer),
        Change::Remove(id) => remove(text, file, id),
    }
}

pub(super) fn message(wanted: &Wanted, artifact: Option<&Artifact>) -> String {
    let subject = match &wanted.change {
        Change::Register(producer) => format!("Register {}", producer.id),
        Change::Repoint(producer) => format!("Point {} at {}", producer.id, producer.job),
        Change::Remove(id) => format!("Remove {id}"),
    };
    let body = artifact.map(|artifact| {
        format!(
            "{} has archived {} in its green build {}.\n\n",
            artifact.job, artifact.path, artifact.build
        )
    });
    let (build, url) = (wanted.build.map(|n| n.to_string()), wanted.build_url());
    let trailers = trailers::to_lines([
        ("Build", build.as_deref()),
        ("Build-Url", url.as_deref()),
        ("Artifact", artifact.map(|artifact| artifact.url.as_str())),
        (
            "Artifact-SHA-256",
            artifact.map(|artifact| artifact.sha256.as_str()),
        ),
        ("Requested-By", Some(&wanted.requester())),
    ]);
    format!("{subject}\n\n{}{trailers}", body.unwrap_or_default())
}
