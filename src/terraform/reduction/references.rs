//! What an expression refers to, read from its tokens: every dotted name that is no attribute, function or key.

use super::scan::{Kind, Token, tokens};
use super::structure::{Attribute, Block, Body, Source, literal};

/// What can be declared in a root and referred to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    Resource(String, String),
    Module(String),
    Local(String),
    Data(String, String),
    Ephemeral(String, String),
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Name::Resource(kind, name) => write!(f, "{kind}.{name}"),
            Name::Module(name) => write!(f, "module.{name}"),
            Name::Local(name) => write!(f, "local.{name}"),
            Name::Data(kind, name) => write!(f, "data.{kind}.{name}"),
            Name::Ephemeral(kind, name) => write!(f, "ephemeral.{kind}.{name}"),
        }
    }
}

/// One reference, with the byte at which it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub to: Name,
    pub at: usize,
}

/// All references of a block that is kept.
pub(super) fn of_block(source: &Source<'_>, block: &Block) -> Vec<Reference> {
    let mut found = Vec::new();
    of_body(source, &block.kind, &block.body, &mut found);
    found.sort_by_key(|reference| reference.at);
    found
}

/// All references of one attribute.
pub(super) fn of_attribute(source: &Source<'_>, attribute: &Attribute) -> Vec<Reference> {
    let mut found = Vec::new();
    of_tokens(source.text, 0, source.tokens_of(attribute), &mut found);
    found
}

/// `kind` is that of a block of the top level, and empty below it.
fn of_body(source: &Source<'_>, kind: &str, body: &Body, found: &mut Vec<Reference>) {
    for attribute in &body.attributes {
        // These name types, providers and what is gone, and no values.
        let is_other = matches!(
            (kind, attribute.name.as_str()),
            ("variable", "type") | ("data" | "ephemeral", "provider") | ("removed", "from")
        );
        if is_other {
            continue;
        }
        let value = source.tokens_of(attribute);
        of_tokens(source.text, 0, value, found);
        if attribute.name == "depends_on" {
            quoted(source.text, value, found);
        }
    }
    for block in &body.blocks {
        if block.kind != "required_providers" {
            of_body(source, "", &block.body, found);
        }
    }
}

/// Terraform still takes `depends_on = ["type.name"]`.
fn quoted(text: &str, value: &[Token], found: &mut Vec<Reference>) {
    for three in value.windows(3) {
        let Some(inner) = literal(text, three) else {
            continue;
        };
        if let Ok(cut) = tokens(inner) {
            of_tokens(inner, three[1].start, &cut, found);
        }
    }
}

/// `offset` is where `text` begins in the file.
fn of_tokens(text: &str, offset: usize, tokens: &[Token], found: &mut Vec<Reference>) {
    // Inside of brackets a name may go on in the next line.
    let tokens: Vec<&Token> = tokens.iter().filter(|t| t.kind != Kind::Newline).collect();
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let is_root = token.kind == Kind::Ident
            && !before.is_some_and(|before| matches!(before.kind, Kind::Dot | Kind::DoubleColon));
        if !is_root {
            continue;
        }
        let word = |token: &Token| text[token.start..token.end].to_owned();
        let part = |part: usize| -> Option<String> {
            let dot = tokens.get(at + 2 * part - 1)?;
            let name = tokens.get(at + 2 * part)?;
            ((dot.kind, name.kind) == (Kind::Dot, Kind::Ident)).then(|| word(name))
        };
        if let Some(to) = name(&word(token), part) {
            found.push(Reference {
                to,
                at: offset + token.start,
            });
        }
    }
}

/// The name that `root` and the parts after it (from 1) make.
fn name(root: &str, part: impl Fn(usize) -> Option<String>) -> Option<Name> {
    Some(match root {
        "var" | "path" | "terraform" | "tofu" | "each" | "count" | "self" => return None,
        "local" => Name::Local(part(1)?),
        "module" => Name::Module(part(1)?),
        "data" => Name::Data(part(1)?, part(2)?),
        "ephemeral" => Name::Ephemeral(part(1)?, part(2)?),
        "resource" => Name::Resource(part(1)?, part(2)?),
        _ => Name::Resource(root.to_owned(), part(1)?),
    })
}
