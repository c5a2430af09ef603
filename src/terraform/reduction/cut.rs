//! One file of the root, reduced, and the line that tells of it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Unread;
use super::closure::{self, Kept};
use super::file::File;
use super::references::Name;
use super::structure::{Block, Source};
use crate::terraform::root::without_bom;

/// How many dropped declarations a line names.
const NAMED: usize = 10;

/// One file of the root, reduced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReducedFile {
    name: String,
    text: String,
    kept: usize,
    dropped: Vec<String>,
}

impl ReducedFile {
    /// Its name in the root's folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is left of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many declarations are kept: blocks, and of `locals` each value.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// The dropped declarations in their order, as Terraform calls them.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }
}

impl std::fmt::Display for ReducedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ReducedFile {
            name,
            kept,
            dropped,
            ..
        } = self;
        write!(f, "{name}: keeps {kept} declaration(s), drops ")?;
        match dropped.get(..NAMED) {
            _ if dropped.is_empty() => f.write_str("nothing"),
            Some(first) if dropped.len() > NAMED => {
                write!(f, "{} and {} more", first.join(", "), dropped.len() - NAMED)
            }
            _ => f.write_str(&dropped.join(", ")),
        }
    }
}

/// The file without what is not `needed`.
pub(super) fn cut(file: &File<'_>, needed: &BTreeSet<Name>) -> Result<ReducedFile, Unread> {
    let bytes = |range: &Range<usize>| &file.source.text[range.clone()];
    let mut kept: Vec<&str> = Vec::new();
    let (mut gone, mut dropped): (Vec<Range<usize>>, Vec<String>) = (Vec::new(), Vec::new());
    for block in &file.source.body.blocks {
        let name = match closure::is_kept(block) {
            Kept::Always => None,
            Kept::IfNeeded(name) => (!needed.contains(&name)).then(|| name.to_string()),
            Kept::Never(_) => Some(called(file, block)),
            Kept::Values => {
                let values = &block.body.attributes;
                let (stay, go): (Vec<_>, Vec<_>) = values
                    .iter()
                    .partition(|value| needed.contains(&closure::local(value)));
                kept.extend(stay.iter().map(|value| bytes(&value.bytes)));
                dropped.extend(go.iter().map(|value| closure::local(value).to_string()));
                if !stay.is_empty() {
                    gone.extend(go.iter().map(|value| value.bytes.clone()));
                    continue;
                }
                if values.is_empty() {
                    dropped.push("locals".to_owned());
                }
                gone.push(block.bytes.clone());
                continue;
            }
        };
        match name {
            None => kept.push(bytes(&block.bytes)),
            Some(name) => {
                gone.push(block.bytes.clone());
                dropped.push(name);
            }
        }
    }
    let text = file.without(&gone);
    if declarations(&text).as_deref() != Some(&kept) {
        return Err(Unread {
            place: file.lines.place(0),
            why: "what is kept of it does not read as it did before",
        });
    }
    Ok(ReducedFile {
        name: file.name.clone(),
        kept: kept.len(),
        text,
        dropped,
    })
}

/// The bytes of every block in a file, and of `locals` those of every value.
fn declarations(text: &str) -> Option<Vec<&str>> {
    let source = Source::read(without_bom(text)).ok()?;
    let mut found = Vec::new();
    for block in source.body.blocks {
        if block.kind == "locals" {
            let values = block.body.attributes.into_iter();
            found.extend(values.map(|value| &source.text[value.bytes]));
        } else {
            found.push(&source.text[block.bytes]);
        }
    }
    Some(found)
}

/// A dropped block as Terraform calls it.
fn called(file: &File<'_>, block: &Block) -> String {
    let written = |name| {
        let attribute = block.body.attribute(name);
        attribute.map_or("?", |attribute| file.source.written(attribute))
    };
    match (block.kind.as_str(), &block.labels[..]) {
        ("resource", labels) => labels.join("."),
        ("moved", _) => format!("moved from {}", written("from")),
        ("import", _) => format!("import to {}", written("to")),
        (kind, []) => kind.to_owned(),
        (kind, labels) => format!("{kind}.{}", labels.join(".")),
    }
}
