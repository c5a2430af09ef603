//! Which providers a root declares and pins, and whether it has those that a state names.

use std::collections::{BTreeMap, BTreeSet};

use crate::terraform::Flavour;

use super::scan::{Kind, Token};
use super::structure::{Attribute, Block, Source, literal};

/// The host of providers that name none, for Terraform; the state of an older run may name it under OpenTofu too.
const TERRAFORM_HOST: &str = "registry.terraform.io";
const OPENTOFU_HOST: &str = "registry.opentofu.org";
/// Part of the program, never installed.
const BUILTIN: &str = "terraform.io/builtin/terraform";

/// A resource's provider that the reduced root has no configuration of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingProvider {
    /// As the state names it.
    pub address: String,
    /// What is missing.
    pub why: String,
}

impl std::fmt::Display for MissingProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.address, self.why)
    }
}

/// What a root says of its providers.
#[derive(Clone, Debug, Default)]
pub(super) struct Providers {
    /// By local name, the source as it is written.
    sources: BTreeMap<String, String>,
    /// Local names with a version constraint.
    constrained: BTreeSet<String>,
    /// Local names that the root uses in any way.
    used: BTreeSet<String>,
    /// Local name and alias of every configuration with one.
    aliases: BTreeSet<(String, String)>,
    /// Addresses in the lock file.
    locked: BTreeSet<String>,
}

impl Providers {
    /// Takes in what one file of the root says.
    pub fn add(&mut self, source: &Source<'_>) {
        for block in &source.body.blocks {
            match (block.kind.as_str(), &block.labels[..]) {
                ("terraform", _) => {
                    for required in block.body.blocks_of("required_providers") {
                        self.require(source, required);
                    }
                }
                ("provider", [local]) => {
                    self.used.insert(local.clone());
                    if block.body.attribute("version").is_some() {
                        self.constrained.insert(local.clone());
                    }
                    let alias = block.body.attribute("alias");
                    if let Some(alias) = alias.and_then(|alias| source.string(alias)) {
                        self.aliases.insert((local.clone(), alias.to_owned()));
                    }
                }
                ("resource" | "data" | "ephemeral", [kind, _]) => {
                    self.used.insert(local_name(source, block, kind));
                }
                _ => {}
            }
        }
    }

    fn require(&mut self, source: &Source<'_>, required: &Block) {
        for attribute in &required.body.attributes {
            let name = &attribute.name;
            self.used.insert(name.clone());
            let members = strings_of_object(source, attribute);
            if let Some(written) = members.get("source") {
                self.sources.insert(name.clone(), (*written).to_owned());
            }
            // `name = ">= 1"` is the form of old.
            if members.contains_key("version") || source.string(attribute).is_some() {
                self.constrained.insert(name.clone());
            }
        }
    }

    /// Takes in the lock file. One that cannot be read locks nothing; Terraform says what is wrong with it.
    pub fn add_lock(&mut self, lock: &[u8]) {
        let Ok(text) = std::str::from_utf8(lock) else {
            return;
        };
        if let Ok(source) = Source::read(text) {
            let blocks = source.body.blocks_of("provider");
            self.locked
                .extend(blocks.filter_map(|block| block.labels.first().cloned()));
        }
    }

    /// Those of the states' providers that have no configuration here. A default one needs none.
    pub fn missing(&self, in_state: &BTreeSet<String>, flavour: Flavour) -> Vec<MissingProvider> {
        let missing = in_state.iter().filter_map(|address| {
            let why = self.why_missing(address, flavour)?;
            let address = address.clone();
            Some(MissingProvider { address, why })
        });
        missing.collect()
    }

    fn why_missing(&self, address: &str, flavour: Flavour) -> Option<String> {
        let old = "an address of before Terraform 0.13; terraform state replace-provider gives it a new one";
        let Some(parsed) = Address::parse(address) else {
            return Some(old.to_owned());
        };
        if let Some(module) = parsed.module {
            return Some(format!("configured inside {module}, which is dropped"));
        }
        let source = self.in_this_root(parsed.source, flavour);
        if source.contains("/-/") {
            return Some(old.to_owned());
        }
        let alias = parsed.alias?;
        let is_configured = self.aliases.iter().any(|(local, configured)| {
            configured == alias && self.source_of(local, flavour) == source
        });
        (!is_configured).then(|| format!("the root configures no alias {alias:?} of it"))
    }

    /// OpenTofu takes a state's provider of Terraform's registry for its own registry's, unless the root names it whole.
    fn in_this_root(&self, source: &str, flavour: Flavour) -> String {
        let rest = source.strip_prefix(TERRAFORM_HOST);
        match (flavour, rest) {
            (Flavour::OpenTofu, Some(rest))
                if !self
                    .used
                    .iter()
                    .any(|local| self.source_of(local, flavour) == source) =>
            {
                format!("{OPENTOFU_HOST}{rest}")
            }
            _ => source.to_owned(),
        }
    }

    /// The address of a provider that the root calls `local`.
    fn source_of(&self, local: &str, flavour: Flavour) -> String {
        let host = match flavour {
            Flavour::Terraform => TERRAFORM_HOST,
            Flavour::OpenTofu => OPENTOFU_HOST,
        };
        let written = match self.sources.get(local) {
            Some(written) => written.to_lowercase(),
            None if local == "terraform" => return BUILTIN.to_owned(),
            None => local.to_owned(),
        };
        match written.split('/').count() {
            1 => format!("{host}/hashicorp/{written}"),
            2 => format!("{host}/{written}"),
            _ => written,
        }
    }

    /// Addresses of those that the root uses or `in_state` names, and that neither the lock file nor a version constraint pins:
    /// `init` takes the newest.
    pub fn unpinned(&self, in_state: &BTreeSet<String>, flavour: Flavour) -> Vec<String> {
        let state = in_state
            .iter()
            .filter_map(|address| Address::parse(address));
        let mut all: BTreeSet<String> = state
            .map(|address| self.in_this_root(address.source, flavour))
            .collect();
        all.extend(self.used.iter().map(|local| self.source_of(local, flavour)));
        let constrained = self.constrained.iter();
        let constrained: BTreeSet<String> = constrained
            .map(|local| self.source_of(local, flavour))
            .collect();
        // OpenTofu takes the versions of a lock file of Terraform's.
        let before = |source: &str| source.replacen(OPENTOFU_HOST, TERRAFORM_HOST, 1);
        let is_locked = |source: &str| {
            self.locked.contains(source)
                || (flavour == Flavour::OpenTofu && self.locked.contains(&before(source)))
        };
        all.retain(|source| {
            source != BUILTIN && !constrained.contains(source) && !is_locked(source)
        });
        all.into_iter().collect()
    }
}

/// The provider of a resource: that of its `provider` argument, else the first word of its type.
fn local_name(source: &Source<'_>, block: &Block, kind: &str) -> String {
    let named = block.body.attribute("provider");
    let written = named.map_or(kind, |named| source.written(named).trim_matches('"'));
    let end: &[char] = if named.is_some() { &['.', '['] } else { &['_'] };
    written.split(end).next().unwrap_or_default().to_owned()
}

/// The members of an object whose values are strings without templates.
fn strings_of_object<'a>(source: &Source<'a>, attribute: &Attribute) -> BTreeMap<&'a str, &'a str> {
    let tokens = source.tokens_of(attribute);
    let text = |token: &Token| &source.text[token.start..token.end];
    let mut members = BTreeMap::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_separator = token.kind == Kind::Equal || text(token) == ":";
        let (Some(before), Some(value)) = (at.checked_sub(1), tokens.get(at + 1..at + 4)) else {
            continue;
        };
        let key = match &tokens[..=before] {
            [.., key] if key.kind == Kind::Ident => text(key),
            [.., key, _] if key.kind == Kind::Literal => text(key),
            _ => continue,
        };
        if let (true, Some(value)) = (is_separator, literal(source.text, value)) {
            members.insert(key, value);
        }
    }
    members
}

/// A provider's address in a state: `module.a.provider["host/namespace/type"].alias`, with a key at the end under OpenTofu.
struct Address<'s> {
    /// `module.a`, where the configuration is not the root's.
    module: Option<&'s str>,
    source: &'s str,
    alias: Option<&'s str>,
}

impl<'s> Address<'s> {
    fn parse(address: &'s str) -> Option<Address<'s>> {
        let (before, after) = address.split_once("provider[\"")?;
        let (source, after) = after.split_once("\"]")?;
        let module = match before {
            "" => None,
            _ => Some(
                before
                    .strip_suffix('.')
                    .filter(|m| m.starts_with("module."))?,
            ),
        };
        let alias = match after.split('[').next().unwrap_or_default() {
            "" => None,
            alias => Some(alias.strip_prefix('.')?),
        };
        Some(Address {
            module,
            source,
            alias,
        })
    }
}
