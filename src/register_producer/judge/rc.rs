//! `.architecturerc`: what the central update of the architecture reads of a repository.

use crate::producers::Producer;
use crate::yaml::{self, Node, Value};

use super::Judged;

/// The file, at a repository's root.
pub const FILE: &str = ".architecturerc";
/// Its keys; any other one fails the producer.
const KEYS: [&str; 3] = ["generated", "sources", "instructions"];

/// Whether a source matches something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It does.
    There,
    /// It does not.
    Missing,
    /// It is a pattern, which is not looked for.
    Pattern,
}

/// The sources with `{path}` and `{producer}` filled in; none where the file cannot be read, which [`judge`] tells.
pub fn sources(content: &[u8], producer: &Producer) -> Vec<String> {
    let root = yaml::utf8(content).and_then(yaml::parse);
    let Ok(root) = root else { return Vec::new() };
    let path = producer.path.as_ref().map(ToString::to_string);
    let path = path.unwrap_or_default();
    let filled = |text: &str| {
        text.replace("{path}", &path)
            .replace("{producer}", producer.id.as_str())
    };
    match root.get("sources").map(Node::value) {
        Some(Value::Sequence(items)) => items.iter().map(|item| filled(item.raw_text())).collect(),
        _ => Vec::new(),
    }
}

/// The path that a source names; nothing for a pattern (<https://git-scm.com/docs/gitglossary#Documentation/gitglossary.txt-pathspec>).
pub fn plain(source: &str) -> Option<&str> {
    let is_pattern = source.starts_with(':') || source.contains(['*', '?', '[', '\\']);
    let path = source.trim_matches('/');
    (!is_pattern)
        .then(|| path.strip_prefix("./").unwrap_or(path))
        .map(|path| if path == "." { "" } else { path })
}

pub(super) fn judge(
    content: Option<&[u8]>,
    sources: &[(String, Source)],
    place: &str,
    judged: &mut Judged,
) {
    let Some(content) = content else {
        judged.warnings.push(format!(
            "{place}: the repository has no {FILE}, without which the central update finds no sources of a deploy repository: commit one with the keys {}",
            KEYS.join(", ")
        ));
        return;
    };
    let mut warn = |text: String| judged.warnings.push(format!("{FILE}: {text}"));
    let root = match yaml::utf8(content).and_then(yaml::parse) {
        Ok(root) => root,
        Err(error) => return warn(format!("{}: {error}", error.place())),
    };
    let Value::Mapping(keys) = root.value() else {
        return warn(format!(
            "{} stands where the keys {} are wanted",
            root.kind(),
            KEYS.join(", ")
        ));
    };
    for (key, _) in keys
        .iter()
        .filter(|(key, _)| !KEYS.contains(&key.raw_text()))
    {
        warn(format!(
            "{}: the key {:?} fails the producer in the central update: take it out",
            key.place(),
            key.raw_text()
        ));
    }
    for key in KEYS.iter().filter(|key| root.get(key).is_none()) {
        warn(format!("the key {key:?} is missing: add it"));
    }
    if root
        .get("generated")
        .is_some_and(|node| node.raw_text() != "true")
    {
        warn("\"generated\" is not true, and the artifact is build output".to_owned());
    }
    let found = |wanted: Source| sources.iter().any(|(_, source)| *source == wanted);
    if found(Source::There) {
        return;
    }
    let named: Vec<&str> = sources.iter().map(|(name, _)| name.as_str()).collect();
    if found(Source::Pattern) {
        let note = format!(
            "{FILE}: its sources are patterns, which are not looked for: {}",
            named.join(", ")
        );
        judged.notes.push(note);
    } else if root.get("sources").is_some() {
        warn(format!(
            "its sources match nothing, which fails the producer in the central update: {}",
            match named.as_slice() {
                [] => "there are none".to_owned(),
                named => named.join(", "),
            }
        ));
    }
}
