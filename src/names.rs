//! Names that come from outside, parsed once at the border.
//!
//! Every type here has a private field and one [`FromStr`](std::str::FromStr) that refuses what its rule does not
//! allow, so whoever holds a value need not look at it again: joined to a folder it stays inside that folder, and
//! where its rule says so it is a valid part of a git ref or of a Kubernetes object's name.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::Visitor;

mod app;
mod git;
mod nearest;
mod producer;
mod repo_url;
mod repository;
#[cfg(test)]
mod tests;

pub use app::{AppName, AppPath, ApplicationName, Namespace, StageName, Target};
pub use git::{BranchName, CommitPrefix, CommitSha, StateKey};
pub use nearest::nearest;
pub use producer::{JobName, OwnedRepo, ProducerId};
pub use repo_url::RepoUrl;
pub(crate) use repo_url::TOKEN_PREFIXES;
pub use repository::{OwnerName, RepoName};

/// The longest piece of a refused value that an error shows, in characters.
const SHOWN: usize = 80;

/// Why a text is not the name it was given as.
///
/// The text is shown quoted, with control characters escaped and cut at 80 characters; a password in a URL is not
/// shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} is not a valid {kind} because of {part}: {rule}")]
pub struct NameError {
    kind: &'static str,
    value: String,
    part: String,
    rule: &'static str,
}

impl NameError {
    fn new(kind: &'static str, value: &str, part: String, rule: &'static str) -> Self {
        let value = match value.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{:?}…", &value[..end]),
            None => format!("{value:?}"),
        };
        Self {
            kind,
            value,
            part,
            rule,
        }
    }
}

/// Gives a newtype over `String` its `FromStr` (through `fn check(&str) -> Result<String, NameError>`), `Display`,
/// `as_str` and serde forms.
macro_rules! name {
    ($type:ident, $check:path) => {
        impl $type {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::names::NameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $check(text).map(Self)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        $crate::names::as_text!($type);
    };
}

/// Gives a type with `FromStr` and `Display` the serde forms of a text.
macro_rules! as_text {
    ($type:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::names::from_text(deserializer, |text| text.parse::<Self>())
            }
        }
    };
}

use as_text;
use name;

/// Deserialises a text and parses it while the deserialiser is still at it, so that an error about the value carries
/// the value's own place and key; parsed afterwards, it would carry those of the mapping around it.
pub(crate) fn from_text<'de, D, T, E>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: fmt::Display,
{
    struct Text<P, T, E>(P, PhantomData<(T, E)>);

    impl<P: FnOnce(&str) -> Result<T, E>, T, E: fmt::Display> Visitor<'_> for Text<P, T, E> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text")
        }

        fn visit_str<F: serde::de::Error>(self, text: &str) -> Result<T, F> {
            (self.0)(text).map_err(F::custom)
        }
    }

    deserializer.deserialize_str(Text(parse, PhantomData))
}

/// The first character for which `allowed` is false, described with its position counted from 1.
fn foreign_character(text: &str, allowed: impl Fn(char) -> bool) -> Option<String> {
    text.chars()
        .position(|c| !allowed(c))
        .and_then(|at| Some((at, text.chars().nth(at)?)))
        .map(|(at, c)| format!("the character {:?} at position {}", c.to_string(), at + 1))
}

/// The characters of which GitHub repository names, app paths and state keys are made.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}
