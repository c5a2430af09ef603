//! One entry of the list, with every fault that it has.

use std::str::FromStr;

use super::{Entry, Producer};
use crate::names::NameError;
use crate::yaml::{Node, Place, Value};

const KEYS: [&str; 6] = ["id", "repo", "jenkinsJob", "path", "self", "defaultLogo"];

pub(super) fn read(item: &Node) -> Result<Entry, Vec<(Place, String)>> {
    let Value::Mapping(keys) = item.value() else {
        let found = item.kind();
        let wanted =
            format!("{found} stands where an entry with `id:` and `jenkinsJob:` is wanted");
        return Err(vec![(item.place(), wanted)]);
    };
    let mut reader = Reader {
        name: item.get("id").map_or("the entry", Node::raw_text),
        item,
        faults: Vec::new(),
    };
    for (key, _) in keys {
        if !KEYS.contains(&key.raw_text()) {
            let sentence = format!(
                "unknown key {:?}; known are {}",
                key.raw_text(),
                KEYS.join(", ")
            );
            reader.fault(key.place(), &sentence);
        }
    }
    let id = reader.required("id");
    let job = reader.required("jenkinsJob");
    let repo = reader.optional("repo");
    let path = reader.optional("path");
    let is_self = reader.truth("self");
    let default_logo = reader.text("defaultLogo");
    match (id, job) {
        (Some(id), Some(job)) if reader.faults.is_empty() => Ok(Entry::new(
            Producer {
                id,
                repo,
                job,
                path,
                is_self,
                default_logo,
            },
            item,
        )),
        _ => Err(reader.faults),
    }
}

struct Reader<'a> {
    name: &'a str,
    item: &'a Node,
    faults: Vec<(Place, String)>,
}

impl Reader<'_> {
    fn fault(&mut self, place: Place, sentence: &str) {
        let name = self.name;
        self.faults.push((place, format!("{name}: {sentence}")));
    }

    fn required<T: FromStr<Err = NameError>>(&mut self, key: &str) -> Option<T> {
        if self.item.get(key).is_none() {
            self.fault(self.item.place(), &format!("the key {key:?} is missing"));
        }
        self.optional(key)
    }

    fn optional<T: FromStr<Err = NameError>>(&mut self, key: &str) -> Option<T> {
        let node = self.item.get(key)?;
        let parsed = node
            .text()
            .map_err(|error| error.to_string())
            .and_then(|text| text.parse().map_err(|error: NameError| error.to_string()));
        parsed
            .map_err(|sentence| self.fault(node.place(), &format!("{key:?}: {sentence}")))
            .ok()
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let node = self.item.get(key)?;
        match node.text() {
            Ok(text) if !text.trim().is_empty() && !text.chars().any(char::is_control) => {
                Some(text.to_owned())
            }
            Ok(_) => {
                self.fault(
                    node.place(),
                    &format!("{key:?} must be one line of text and not empty"),
                );
                None
            }
            Err(error) => {
                self.fault(node.place(), &format!("{key:?}: {error}"));
                None
            }
        }
    }

    fn truth(&mut self, key: &str) -> bool {
        let Some(node) = self.item.get(key) else {
            return false;
        };
        match node.value() {
            Value::Scalar { text, plain: true } if text == "true" => true,
            Value::Scalar { text, plain: true } if text == "false" => false,
            _ => {
                self.fault(node.place(), &format!("{key:?} takes true or false"));
                false
            }
        }
    }
}
