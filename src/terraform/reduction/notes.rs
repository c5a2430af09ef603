//! What a destroy of the reduced root leaves undone or no longer heeds.

use std::collections::BTreeMap;

use crate::terraform::Flavour;
use crate::terraform::root::configuration_files;

use super::file::{File, Lines};
use super::structure::{Attribute, Block, Source};

/// One thing in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The resource, as its module has it.
    pub address: String,
    /// File and line in the clone.
    pub place: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.address, self.place)
    }
}

/// What a destroy of the reduced root leaves undone or no longer heeds, in the order of files and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Provisioners with `when = destroy` of resources that are dropped: they do not run.
    pub destroy_provisioners: Vec<Note>,
    /// Resources with `prevent_destroy`, which no longer binds.
    pub prevent_destroy: Vec<Note>,
    /// What kept `removed` blocks take out of the state without destroying it.
    pub forgotten: Vec<Note>,
    /// Resources with OpenTofu's `lifecycle { destroy = false }`: where the state says so too, they are forgotten, not destroyed.
    pub not_destroyed: Vec<Note>,
    /// Resources whose own `skip_destroy` argument tells the provider to leave the object where it is.
    pub skip_destroy: Vec<Note>,
    /// Files of modules that could not be looked at, with file and line: they may hold any of these.
    pub unread: Vec<String>,
    /// What kept `removed` blocks run as they destroy it.
    pub run: Vec<Note>,
    /// Calls of modules, which are dropped with all that is in them, and their sources where these are plain text.
    pub calls: Vec<(Note, Option<String>)>,
}

impl Notes {
    /// Takes in those of another folder.
    pub fn extend(&mut self, other: Notes) {
        self.destroy_provisioners.extend(other.destroy_provisioners);
        self.prevent_destroy.extend(other.prevent_destroy);
        self.forgotten.extend(other.forgotten);
        self.not_destroyed.extend(other.not_destroyed);
        self.skip_destroy.extend(other.skip_destroy);
        self.unread.extend(other.unread);
        self.run.extend(other.run);
        self.calls.extend(other.calls);
    }

    /// The notes of a local module, whose folder stands at `shown` in the clone: all of it is dropped with the call.
    pub fn of_module(files: &BTreeMap<String, Vec<u8>>, shown: &str, flavour: Flavour) -> Notes {
        let mut notes = Notes::default();
        let names = files.keys().cloned().collect();
        for name in configuration_files(&names, flavour) {
            let bytes = files.get(&name).map_or(&[][..], Vec::as_slice);
            match File::read(&name, bytes, shown) {
                // Of a module that is called no longer, no `removed` block is heard.
                Ok(file) => notes.add_resources(&file.source, &file.lines),
                Err(fault) => notes.unread.push(fault.place),
            }
        }
        notes
    }

    /// Takes in one file of the root.
    pub(super) fn add_root(&mut self, source: &Source<'_>, lines: &Lines, flavour: Flavour) {
        self.add_resources(source, lines);
        for block in source.body.blocks_of("removed") {
            self.removed(source, lines, block, flavour);
        }
    }

    fn add_resources(&mut self, source: &Source<'_>, lines: &Lines) {
        for block in source.body.blocks_of("resource") {
            self.resource(source, lines, block, &block.labels.join("."));
        }
        for block in source.body.blocks_of("module") {
            let call = Note {
                address: format!("module.{}", block.labels.join(".")),
                place: lines.place(block.bytes.start),
            };
            let from = block.body.attribute("source");
            let from = from.and_then(|from| source.string(from));
            self.calls.push((call, from.map(str::to_owned)));
        }
    }

    fn resource(&mut self, source: &Source<'_>, lines: &Lines, block: &Block, address: &str) {
        let note = |at: usize| Note {
            address: address.to_owned(),
            place: lines.place(at),
        };
        for provisioner in block.body.blocks_of("provisioner") {
            let when = provisioner.body.attribute("when");
            if when.is_some_and(|when| source.written(when).trim_matches('"') == "destroy") {
                self.destroy_provisioners
                    .push(note(provisioner.bytes.start));
            }
        }
        let lifecycle = |name| {
            let blocks = block.body.blocks_of("lifecycle");
            blocks.filter_map(move |lifecycle| lifecycle.body.attribute(name))
        };
        // OpenTofu takes expressions here; what is not plainly off may be on.
        let on = lifecycle("prevent_destroy").filter(|set| !says(source, set, "false"));
        self.prevent_destroy
            .extend(on.map(|set| note(set.bytes.start)));
        let kept = lifecycle("destroy").filter(|set| !says(source, set, "true"));
        self.not_destroyed
            .extend(kept.map(|set| note(set.bytes.start)));
        let skipped = block.body.attribute("skip_destroy");
        let skipped = skipped.filter(|set| !says(source, set, "false"));
        self.skip_destroy
            .extend(skipped.map(|set| note(set.bytes.start)));
    }

    fn removed(&mut self, source: &Source<'_>, lines: &Lines, block: &Block, flavour: Flavour) {
        let mut lifecycles = block.body.blocks_of("lifecycle");
        let destroy = lifecycles.find_map(|lifecycle| lifecycle.body.attribute("destroy"));
        let is_forgotten = match destroy {
            Some(destroy) => !says(source, destroy, "true"),
            // Where it does not say, Terraform destroys and OpenTofu forgets.
            None => flavour == Flavour::OpenTofu,
        };
        let from = block.body.attribute("from");
        let note = |at: usize| Note {
            address: from.map_or("", |from| source.written(from)).to_owned(),
            place: lines.place(at),
        };
        if is_forgotten {
            self.forgotten.push(note(block.bytes.start));
        } else {
            let provisioners = block.body.blocks_of("provisioner");
            self.run
                .extend(provisioners.map(|run| note(run.bytes.start)));
        }
    }
}

fn says(source: &Source<'_>, attribute: &Attribute, value: &str) -> bool {
    source.written(attribute).trim_matches('"') == value
}
