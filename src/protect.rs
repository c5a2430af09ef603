//! Which resources an apply may not destroy, and what lifts that for one of them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::names::from_text;

/// The key of the trailer that lifts the protection of the address that is its value.
pub const TRAILER: &str = "Allow-Destroy";

/// A pattern, or a list of them, that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProtectionError {
    /// Nothing in it.
    #[error("a pattern is empty; leave it out, or name a resource type or an address")]
    Empty,
    /// A character that no resource type has.
    #[error(
        "the pattern {pattern:?} has no dot, so it is one of a resource type, and no type has the character {character:?}; the only wildcard is \"*\""
    )]
    Type {
        /// The pattern.
        pattern: String,
        /// The first such character.
        character: char,
    },
    /// White space around it, or a control character in it.
    #[error("the pattern {0:?} has white space around it or a control character in it")]
    Blank(String),
    /// Nothing stands before the first or behind the last dot.
    #[error("the pattern {0:?} begins or ends with a dot, which no address does")]
    Dot(String),
    /// An address without a wildcard that ends before a resource's name.
    #[error(
        "the pattern {0:?} is no resource's address: one of a module ends in \".*\", one of a resource in \"<type>.<name>\""
    )]
    NoResource(String),
    /// A list that begins with `[` and is no JSON list of texts.
    #[error("a list that begins with \"[\" must be a JSON list of texts")]
    Json(#[source] serde_json::Error),
}

/// The patterns of what is protected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Protection {
    patterns: Vec<Pattern>,
}

/// One pattern, in which `*` stands for any run of characters and every other character for itself.
///
/// Without a dot it is a resource type and matches in every module. With one it is a whole address; it matches the
/// address as it stands, and also without its indices, so that `module.db.*` still protects when the module gets a
/// `for_each`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    of: Of,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Type,
    Address,
}

impl Protection {
    /// The patterns of a variable: a JSON list where it begins with `[`, else words with commas or white space between.
    ///
    /// # Errors
    /// When a pattern is wrong, or the JSON is no list of texts.
    pub fn from_variable(text: &str) -> Result<Protection, ProtectionError> {
        let words: Vec<String> = if text.trim_start().starts_with('[') {
            serde_json::from_str(text).map_err(ProtectionError::Json)?
        } else {
            let words = text.split(|c: char| c == ',' || c.is_whitespace());
            words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
        };
        let patterns: Result<Vec<Pattern>, _> = words.iter().map(|word| word.parse()).collect();
        Ok(Protection {
            patterns: patterns?,
        })
    }

    /// The patterns as a JSON list.
    pub fn to_json(&self) -> String {
        serde_json::Value::from_iter(self.patterns.iter().map(|p| p.text.as_str())).to_string()
    }

    /// Whether nothing is protected.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The first pattern that matches a resource. A data source is never protected: nothing is destroyed with it.
    pub fn over(&self, address: &str) -> Option<&Pattern> {
        let kind = resource_type(address)?;
        let plain = without_indices(address);
        self.patterns.iter().find(|pattern| match pattern.of {
            Of::Type => pattern.matches(kind),
            Of::Address => pattern.matches(address) || pattern.matches(&plain),
        })
    }
}

impl Pattern {
    fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.text.split_once('*') else {
            return self.text == text;
        };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(mut left) = text
            .strip_prefix(first)
            .and_then(|left| left.strip_suffix(last))
        else {
            return false;
        };
        // The first place where a part stands leaves the most for those behind it.
        middle.split('*').all(|part| match left.split_once(part) {
            Some((_, behind)) => {
                left = behind;
                true
            }
            None => false,
        })
    }
}

impl FromStr for Pattern {
    type Err = ProtectionError;

    fn from_str(text: &str) -> Result<Pattern, ProtectionError> {
        let pattern = text.to_owned();
        if text.is_empty() {
            return Err(ProtectionError::Empty);
        }
        if text.trim() != text || text.chars().any(char::is_control) {
            return Err(ProtectionError::Blank(pattern));
        }
        if !text.contains('.') {
            let foreign = |c: &char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '*'));
            return match text.chars().find(foreign) {
                Some(character) => Err(ProtectionError::Type { pattern, character }),
                None => Ok(Pattern {
                    text: pattern,
                    of: Of::Type,
                }),
            };
        }
        if text.starts_with('.') || text.ends_with('.') {
            return Err(ProtectionError::Dot(pattern));
        }
        if !text.contains('*') && in_module(&segments(text)).len() != 2 {
            return Err(ProtectionError::NoResource(pattern));
        }
        Ok(Pattern {
            text: pattern,
            of: Of::Address,
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        from_text(deserializer, str::parse::<Pattern>)
    }
}

/// The type of the resource at an address; `None` for a data source.
fn resource_type(address: &str) -> Option<&str> {
    match *in_module(&segments(address)) {
        [] | ["data", ..] => None,
        [kind, ..] => Some(kind),
    }
}

/// The segments behind those of the modules.
fn in_module<'a, 'b>(mut segments: &'a [&'b str]) -> &'a [&'b str] {
    while let ["module", _, rest @ ..] = segments {
        segments = rest;
    }
    segments
}

/// An address between its dots; those in an index, as in `["example.com"]`, are none.
fn segments(address: &str) -> Vec<&str> {
    let mut segments = Vec::new();
    let mut start = 0;
    for (at, c, _) in marked(address).filter(|(_, c, in_index)| *c == '.' && !in_index) {
        segments.extend(address.get(start..at));
        start = at + c.len_utf8();
    }
    segments.extend(address.get(start..));
    segments
}

fn without_indices(address: &str) -> String {
    let plain = marked(address).filter(|(_, _, in_index)| !in_index);
    plain.map(|(_, c, _)| c).collect()
}

/// Each character of an address with its place and whether it belongs to an index.
fn marked(address: &str) -> impl Iterator<Item = (usize, char, bool)> {
    let (mut in_index, mut in_key, mut escaped) = (false, false, false);
    address.char_indices().map(move |(at, c)| {
        let was_in_index = in_index;
        match c {
            _ if escaped => escaped = false,
            '\\' if in_key => escaped = true,
            '"' if in_index => in_key = !in_key,
            '[' if !in_key => in_index = true,
            ']' if !in_key => in_index = false,
            _ => {}
        }
        (at, c, was_in_index || in_index)
    })
}

/// The addresses that a commit's message allows to be destroyed, each by a trailer of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    addresses: BTreeSet<String>,
}

impl Allowed {
    /// Takes the addresses from a message's trailers. The case of the key does not matter, that of the address does.
    pub fn from_trailers<K: AsRef<str>, V: AsRef<str>>(
        trailers: impl IntoIterator<Item = (K, V)>,
    ) -> Allowed {
        let ours = trailers
            .into_iter()
            .filter(|(key, _)| key.as_ref().trim().eq_ignore_ascii_case(TRAILER));
        Allowed {
            addresses: ours
                .map(|(_, value)| value.as_ref().trim().to_owned())
                .collect(),
        }
    }

    /// Whether this very address may be destroyed.
    pub fn names(&self, address: &str) -> bool {
        self.addresses.contains(address)
    }
}

/// What protection means for one change that destroys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protected {
    /// The resource is protected: an apply of this plan applies nothing.
    Refused,
    /// It is protected, and the commit allows it.
    Allowed,
}

/// As it stands behind a change.
impl fmt::Display for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protected::Refused => f.write_str("protected: an apply refuses it"),
            Protected::Allowed => write!(f, "protected, allowed by {TRAILER}"),
        }
    }
}

/// A change that protection stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The address that would be destroyed.
    pub address: String,
    /// The address by which the state still knows it, where that is the one which is protected.
    pub known_as: Option<String>,
    /// What protects it.
    pub pattern: Pattern,
}

/// `<address> (protected by <pattern>)`.
impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stopped {
            address,
            known_as,
            pattern,
        } = self;
        match known_as {
            Some(old) => write!(f, "{address} (as {old} protected by {pattern})"),
            None => write!(f, "{address} (protected by {pattern})"),
        }
    }
}

/// An apply that would destroy what is protected: none of it is applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "nothing was applied, since it would destroy what is protected: {}; a commit lifts that whose message ends with {}",
    joined(stopped.iter().map(ToString::to_string)),
    joined(stopped.iter().map(|s| format!("{TRAILER}: {}", s.address)))
)]
pub struct Refused {
    stopped: Vec<Stopped>,
}

impl Refused {
    /// An error that names each of them, unless there is none.
    ///
    /// # Errors
    /// When something is stopped.
    pub fn unless_none(stopped: Vec<Stopped>) -> Result<(), Refused> {
        if stopped.is_empty() {
            Ok(())
        } else {
            Err(Refused { stopped })
        }
    }
}

/// Each text once, in their order.
fn joined(texts: impl Iterator<Item = String>) -> String {
    let mut once: Vec<String> = Vec::new();
    for text in texts {
        if !once.contains(&text) {
            once.push(text);
        }
    }
    once.join(", ")
}

#[cfg(test)]
mod tests;
