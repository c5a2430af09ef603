//! YAML with places, read strictly: what Helm's parser and a YAML 1.2 parser would read differently is refused.
//!
//! Helm reads values by sigs.k8s.io/yaml, a fork of go-yaml 2, which follows YAML 1.1 in what plain scalars mean
//! (<https://github.com/kubernetes-sigs/yaml/blob/master/goyaml.v2/resolve.go>). [`Node::text`] therefore refuses a
//! plain scalar that it would take for something else than text.

mod dialect;
mod misread;
mod tree;

use std::fmt;

/// A place in a file: line and column, both counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// The first character of a file.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value of a YAML document and where it stands. Aliases are replaced by what they stand for, merge keys are applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    place: Place,
    value: Value,
}

/// What a [`Node`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text, number, truth value or null, as written.
    Scalar {
        /// The text after quotes and escapes are taken away.
        text: String,
        /// Whether it stands without quotes and without `!!str`, so that it can mean something else than text.
        plain: bool,
    },
    /// A list.
    Sequence(Vec<Node>),
    /// Keys and values in the order of the file; keys are scalars and differ from one another.
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    /// Where the value begins. What came by an alias or a merge stands where its anchor is.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The value itself.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Whether nothing, `~` or `null` stands here.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if misread::is_null(text))
    }

    /// The value as text.
    ///
    /// # Errors
    /// When it is a list or a mapping, or a plain scalar that Helm reads as a number, a truth value, a date or null.
    pub fn text(&self) -> Result<&str, YamlError> {
        let Value::Scalar { text, plain } = &self.value else {
            return Err(YamlError::NotText {
                place: self.place,
                found: self.kind(),
            });
        };
        if *plain && text.is_empty() {
            return Err(YamlError::NotText {
                place: self.place,
                found: self.kind(),
            });
        }
        match misread::reading(text).filter(|_| *plain) {
            Some(reading) => Err(YamlError::Misread {
                place: self.place,
                text: text.clone(),
                reading,
            }),
            None => Ok(text),
        }
    }

    /// The value of a key, when this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Mapping(entries) => entries
                .iter()
                .find(|(name, _)| name.raw_text() == key)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// What stands here, in words for an error: `a list`, `a mapping`, `nothing`, `a text`.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
            Value::Scalar { .. } if self.is_null() => "nothing",
            Value::Scalar { text, plain: true } => misread::reading(text).unwrap_or("a text"),
            Value::Scalar { .. } => "a text",
        }
    }

    /// The scalar's text whatever it means, for naming it in an error; empty for a list or a mapping.
    pub fn raw_text(&self) -> &str {
        match &self.value {
            Value::Scalar { text, .. } => text,
            Value::Sequence(_) | Value::Mapping(_) => "",
        }
    }
}

/// Why a text is not YAML that Helm and we read alike. The sentence does not hold the place: see [`YamlError::place`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// The bytes are no UTF-8.
    #[error("the file is not UTF-8 text{hint}; save it as UTF-8")]
    NotUtf8 {
        /// Where the first wrong byte stands.
        place: Place,
        /// What it probably is instead.
        hint: &'static str,
    },
    /// A character that YAML does not allow, or that parsers read differently.
    #[error(
        "the character {character:?} must not stand in a YAML file; remove it, or write it as an escape in double quotes"
    )]
    Character {
        /// Where it stands.
        place: Place,
        /// The character.
        character: String,
    },
    /// The parser's own complaint.
    #[error("this is not valid YAML: {complaint}{}", still_open(*open))]
    Syntax {
        /// Where the parser stopped.
        place: Place,
        /// Its words.
        complaint: String,
        /// The innermost `{` or `[` of a line above that is still open there.
        open: Option<(char, Place)>,
    },
    /// What YAML 1.2 allows and Helm's parser does not read.
    #[error("Helm does not read {what}; {remedy}")]
    Unread {
        /// Where it stands.
        place: Place,
        /// What stands there.
        what: &'static str,
        /// What to write instead.
        remedy: &'static str,
    },
    /// A `%` line before the document.
    #[error("YAML directives (lines that begin with \"%\") are not read; remove the line")]
    Directive {
        /// Where it stands.
        place: Place,
    },
    /// More than one document.
    #[error(
        "a second YAML document begins here; keep one document in the file, since Helm reads only the first"
    )]
    SecondDocument {
        /// Where it begins.
        place: Place,
    },
    /// A key that its mapping already has.
    #[error("the key {key:?} is already set at {first}; remove one of the two")]
    DuplicateKey {
        /// Where the second one stands.
        place: Place,
        /// The key.
        key: String,
        /// Where the first one stands.
        first: Place,
    },
    /// A list or mapping as key.
    #[error("{found} stands as a key; a key must be one text")]
    KeyNotScalar {
        /// Where it stands.
        place: Place,
        /// What stands there.
        found: &'static str,
    },
    /// A tag other than `!!str`.
    #[error(
        "the tag on this value is not read; remove it, or put the value in quotes to have it as text"
    )]
    Tag {
        /// Where the tagged value stands.
        place: Place,
    },
    /// An alias inside the value that its anchor names.
    #[error("this alias stands inside the value that it stands for; write the value out")]
    AliasInItself {
        /// Where the alias stands.
        place: Place,
    },
    /// A merge key with something else than mappings.
    #[error("the merge key \"<<\" takes a mapping or a list of mappings, and {found} stands here")]
    MergeOfOther {
        /// Where the merged value stands.
        place: Place,
        /// What stands there.
        found: &'static str,
    },
    /// A merge behind a key that it would set too.
    #[error(
        "this merge also sets {key:?}, which stands above it at {own}, and Helm would take the merged value; put \"<<\" first in its mapping, so that the mapping's own keys win"
    )]
    MergeAfterKey {
        /// Where the merge key stands.
        place: Place,
        /// The key that both set.
        key: String,
        /// Where the mapping's own key stands.
        own: Place,
    },
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("the file is nested deeper than {MAX_DEPTH} levels here; flatten it")]
    TooDeep {
        /// Where the level begins.
        place: Place,
    },
    /// Larger than [`MAX_SIZE`] with its aliases written out.
    #[error(
        "the file has more than {MAX_SIZE} values once its aliases are written out; make it smaller"
    )]
    TooLarge {
        /// Where the bound was passed.
        place: Place,
    },
    /// A list or mapping where text is wanted.
    #[error("a text is wanted and {found} stands here")]
    NotText {
        /// Where it stands.
        place: Place,
        /// What stands there.
        found: &'static str,
    },
    /// A plain scalar that Helm reads as something else than text.
    #[error("Helm reads {text} without quotes as {reading}, and a text is wanted; write {text:?}")]
    Misread {
        /// Where it stands.
        place: Place,
        /// The scalar as written.
        text: String,
        /// What it is read as.
        reading: &'static str,
    },
}

fn still_open(open: Option<(char, Place)>) -> String {
    open.map_or_else(String::new, |(mark, place)| {
        format!("; the {:?} at {place} is still open", mark.to_string())
    })
}

/// The deepest nesting that is read, aliases written out.
pub const MAX_DEPTH: usize = 64;

/// The most values that a document may have, aliases written out; a scalar counts once more for every 64 bytes of it.
pub const MAX_SIZE: usize = 200_000;

impl YamlError {
    /// Where the fault is.
    pub fn place(&self) -> Place {
        match self {
            Self::NotUtf8 { place, .. }
            | Self::Character { place, .. }
            | Self::Syntax { place, .. }
            | Self::Unread { place, .. }
            | Self::Directive { place }
            | Self::SecondDocument { place }
            | Self::DuplicateKey { place, .. }
            | Self::KeyNotScalar { place, .. }
            | Self::Tag { place }
            | Self::AliasInItself { place }
            | Self::MergeOfOther { place, .. }
            | Self::MergeAfterKey { place, .. }
            | Self::TooDeep { place }
            | Self::TooLarge { place }
            | Self::NotText { place, .. }
            | Self::Misread { place, .. } => *place,
        }
    }
}

/// The bytes of a file as text.
///
/// # Errors
/// When they are not UTF-8; UTF-16, as some Windows programs write it, is named.
pub fn utf8(bytes: &[u8]) -> Result<&str, YamlError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let last_line = good.rsplit('\n').next().unwrap_or_default();
        let hint = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            " but UTF-16"
        } else {
            ""
        };
        YamlError::NotUtf8 {
            place: Place {
                line: good.matches('\n').count() + 1,
                column: last_line.chars().count() + 1,
            },
            hint,
        }
    })
}

/// Reads the one document of a YAML text. An empty text is null. A byte order mark at its beginning is skipped.
///
/// # Errors
/// When the text is no YAML, has a second document, a doubled key, a directive or a tag, or is nested too deeply or too
/// large once its aliases are written out.
pub fn parse(text: &str) -> Result<Node, YamlError> {
    tree::parse(text)
}

#[cfg(test)]
mod tests;
