//! What of a root stays: the kept blocks, and the values, data and ephemeral resources that these need.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Dangling;
use super::file::File;
use super::references::{self, Name, Reference};
use super::structure::{Attribute, Block};

/// Something that is kept and may refer to others.
struct Owner {
    /// `provider "x"`, `local.x`.
    title: String,
    /// What of the kept blocks leads here, where that is another.
    needed_by: Option<String>,
    /// Each reference with its place.
    references: Vec<(String, Reference)>,
}

/// The names of all values, data and ephemeral resources that are needed, or every reference to what is dropped.
pub(super) fn needed(files: &[File<'_>]) -> Result<BTreeSet<Name>, Vec<Dangling>> {
    let mut declared: BTreeMap<Name, Vec<Vec<(String, Reference)>>> = BTreeMap::new();
    let mut dropped: BTreeSet<Name> = BTreeSet::new();
    let mut open: VecDeque<Owner> = VecDeque::new();
    for file in files {
        let placed = |found: Vec<Reference>| -> Vec<(String, Reference)> {
            let with_place = |found: Reference| (file.lines.place(found.at), found);
            found.into_iter().map(with_place).collect()
        };
        for block in &file.source.body.blocks {
            let of_block = || placed(references::of_block(&file.source, block));
            match is_kept(block) {
                Kept::Always => open.push_back(Owner {
                    title: title(block),
                    needed_by: None,
                    references: of_block(),
                }),
                Kept::IfNeeded(name) => declared.entry(name).or_default().push(of_block()),
                Kept::Values => {
                    for value in &block.body.attributes {
                        let found = placed(references::of_attribute(&file.source, value));
                        declared.entry(local(value)).or_default().push(found);
                    }
                }
                Kept::Never(name) => dropped.extend(name),
            }
        }
    }
    let mut needed = BTreeSet::new();
    let mut dangling = Vec::new();
    while let Some(owner) = open.pop_front() {
        for (place, reference) in owner.references {
            let name = reference.to;
            if dropped.contains(&name) {
                dangling.push(Dangling {
                    place,
                    owner: owner.title.clone(),
                    refers_to: name.to_string(),
                    needed_by: owner.needed_by.clone(),
                });
                continue;
            }
            let Some(declarations) = declared.remove(&name) else {
                continue;
            };
            let needed_by = owner.needed_by.as_ref().unwrap_or(&owner.title);
            open.push_back(Owner {
                title: name.to_string(),
                needed_by: Some(needed_by.clone()),
                references: declarations.into_iter().flatten().collect(),
            });
            needed.insert(name);
        }
    }
    if dangling.is_empty() {
        Ok(needed)
    } else {
        Err(dangling)
    }
}

/// Whether a block of the top level stays.
pub(super) enum Kept {
    Always,
    /// A data source or an ephemeral resource.
    IfNeeded(Name),
    /// A `locals` block, each value for itself.
    Values,
    /// With the name under which others refer to it.
    Never(Option<Name>),
}

pub(super) fn is_kept(block: &Block) -> Kept {
    match (block.kind.as_str(), &block.labels[..]) {
        ("terraform" | "provider" | "variable" | "removed", _) => Kept::Always,
        ("data", [kind, name]) => Kept::IfNeeded(Name::Data(kind.clone(), name.clone())),
        ("ephemeral", [kind, name]) => Kept::IfNeeded(Name::Ephemeral(kind.clone(), name.clone())),
        ("locals", _) => Kept::Values,
        ("resource", [kind, name]) => Kept::Never(Some(Name::Resource(kind.clone(), name.clone()))),
        ("module", [name]) => Kept::Never(Some(Name::Module(name.clone()))),
        _ => Kept::Never(None),
    }
}

pub(super) fn local(value: &Attribute) -> Name {
    Name::Local(value.name.clone())
}

/// A block as its first line has it.
pub(super) fn title(block: &Block) -> String {
    let labels: String = block
        .labels
        .iter()
        .map(|label| format!(" \"{label}\""))
        .collect();
    format!("{}{labels}", block.kind)
}
