//! Before and after side by side, down to what differs.

use std::collections::HashSet;

use serde_json::Value;

use super::{Attribute, ChangeJson, Shown, Side};

const NO: Value = Value::Bool(false);
const YES: Value = Value::Bool(true);

/// The attributes that change, and how many do not; the texts that are sensitive go into `hidden`.
pub(super) fn values_of(change: &ChangeJson, hidden: &mut Vec<String>) -> (Vec<Attribute>, usize) {
    let mut walk = Walk {
        replace_paths: &change.replace_paths,
        hidden,
        path: Vec::new(),
        found: Vec::new(),
        same: 0,
    };
    walk.go(&Pair {
        before: given(&change.before),
        after: given(&change.after),
        before_sensitive: &change.before_sensitive,
        after_sensitive: &change.after_sensitive,
        unknown: &change.after_unknown,
    });
    (walk.found, walk.same)
}

/// Every text within a value, the keys of its maps left aside.
pub(super) fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Number(number) => into.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(members) => members.values().for_each(|item| texts(item, into)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn given(value: &Value) -> Option<&Value> {
    Some(value).filter(|value| !value.is_null())
}

struct Walk<'a> {
    replace_paths: &'a [Vec<Value>],
    hidden: &'a mut Vec<String>,
    path: Vec<Step>,
    found: Vec<Attribute>,
    same: usize,
}

#[derive(Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

/// One place of both values, with what the plan says of it.
#[derive(Clone, Copy)]
struct Pair<'a> {
    before: Option<&'a Value>,
    after: Option<&'a Value>,
    before_sensitive: &'a Value,
    after_sensitive: &'a Value,
    unknown: &'a Value,
}

impl<'a> Pair<'a> {
    fn named(&self, name: &str) -> Pair<'a> {
        let member = |value: Option<&'a Value>| value.and_then(|v| v.get(name)).and_then(given);
        Pair {
            before: member(self.before),
            after: member(self.after),
            before_sensitive: mark_of(self.before_sensitive, |m| m.get(name).unwrap_or(&NO)),
            after_sensitive: mark_of(self.after_sensitive, |m| m.get(name).unwrap_or(&NO)),
            unknown: mark_of(self.unknown, |m| m.get(name).unwrap_or(&NO)),
        }
    }

    fn at(&self, index: usize) -> Pair<'a> {
        let item = |value: Option<&'a Value>| value.and_then(|v| v.get(index)).and_then(given);
        // A list of marks names every item: one beyond its end is not known to be harmless.
        let mark = |m: &'a Value| {
            let absent = if m.as_array().is_some() { &YES } else { &NO };
            m.get(index).unwrap_or(absent)
        };
        Pair {
            before: item(self.before),
            after: item(self.after),
            before_sensitive: mark_of(self.before_sensitive, mark),
            after_sensitive: mark_of(self.after_sensitive, mark),
            unknown: mark_of(self.unknown, |m| m.get(index).unwrap_or(&NO)),
        }
    }

    /// Whether anything in it is sensitive.
    fn is_sensitive(&self) -> bool {
        marks(self.before_sensitive) || marks(self.after_sensitive)
    }

    /// Whether all of it is shown or hidden as one.
    fn is_leaf(&self) -> bool {
        let is_whole = |mark: &Value| mark.as_bool() == Some(true);
        if is_whole(self.before_sensitive) || is_whole(self.after_sensitive) {
            return true;
        }
        if is_whole(self.unknown) && !self.before.is_some_and(Value::is_object) {
            return true;
        }
        let sides = [self.before, self.after];
        let mut given = sides.into_iter().flatten();
        if given.clone().all(Value::is_object) || given.clone().all(Value::is_array) {
            let is_plain = |value: &Value| match value {
                Value::Array(items) => items.iter().all(|i| !i.is_object() && !i.is_array()),
                Value::Object(members) => members.is_empty(),
                _ => true,
            };
            return given.all(is_plain) && !self.is_sensitive() && !marks(self.unknown);
        }
        true
    }
}

/// A mark below another one: what holds for the whole holds for its parts.
fn mark_of<'a>(mark: &'a Value, part: impl Fn(&'a Value) -> &'a Value) -> &'a Value {
    match mark {
        Value::Object(_) | Value::Array(_) => part(mark),
        Value::Bool(false) | Value::Null => &NO,
        _ => &YES,
    }
}

/// Whether a mark, or one within it, is set. What is no mark is taken for one.
fn marks(mark: &Value) -> bool {
    match mark {
        Value::Bool(set) => *set,
        Value::Null => false,
        Value::Array(items) => items.iter().any(marks),
        Value::Object(members) => members.values().any(marks),
        Value::Number(_) | Value::String(_) => true,
    }
}

impl Walk<'_> {
    fn go(&mut self, pair: &Pair<'_>) {
        if pair.is_leaf() {
            self.leaf(pair);
            return;
        }
        let sides = [pair.before, pair.after];
        let lengths = sides.into_iter().flatten();
        let length = lengths.filter_map(|v| v.as_array().map(Vec::len)).max();
        if let Some(length) = length {
            let unknown = pair.unknown.as_array().map_or(0, Vec::len);
            for index in 0..length.max(unknown) {
                self.path.push(Step::Index(index));
                self.go(&pair.at(index));
                self.path.pop();
            }
            return;
        }
        let mut seen = HashSet::new();
        let members = sides.into_iter().flatten().chain([pair.unknown]);
        let names = members.filter_map(Value::as_object).flat_map(|m| m.keys());
        for name in names.filter(|name| seen.insert(*name)) {
            self.path.push(Step::Name(name.clone()));
            self.go(&pair.named(name));
            self.path.pop();
        }
    }

    fn leaf(&mut self, pair: &Pair<'_>) {
        let is_unknown = marks(pair.unknown);
        let is_sensitive = pair.is_sensitive();
        if is_sensitive {
            for value in [pair.before, pair.after].into_iter().flatten() {
                texts(value, self.hidden);
            }
        }
        if pair.before.is_none() && pair.after.is_none() && !is_unknown {
            return;
        }
        if pair.before == pair.after && !is_unknown {
            self.same += 1;
            return;
        }
        let has_items = |value: &Value| value.as_array().is_some_and(|items| items.len() > 1);
        let is_tall = [pair.before, pair.after]
            .into_iter()
            .flatten()
            .any(has_items);
        let side = |value: Option<&Value>| match value {
            None => Side::Absent,
            Some(_) if is_sensitive => Side::Hidden,
            Some(Value::String(text)) => Side::Text(Shown::whole(text.clone())),
            Some(value) => Side::Json(Shown::whole(json(value, is_tall))),
        };
        let after = match is_unknown {
            // Also of what is sensitive: that it is not known yet tells nothing.
            true => Side::Unknown,
            false => side(pair.after),
        };
        self.found.push(Attribute {
            path: self.written_path(),
            before: side(pair.before),
            after,
            replaces: self.replaces(),
        });
    }

    /// Whether this attribute, one above it or one within it is why the object is replaced.
    fn replaces(&self) -> bool {
        self.replace_paths.iter().any(|path| {
            !path.is_empty()
                && path.iter().zip(&self.path).all(|(named, step)| match step {
                    Step::Name(name) => named.as_str() == Some(name),
                    Step::Index(index) => named.as_u64() == Some(*index as u64),
                })
        })
    }

    fn written_path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Name(name) if is_plain(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
                Step::Name(name) => path.push_str(&format!("[{}]", Value::from(name.as_str()))),
            }
        }
        path
    }
}

fn is_plain(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// JSON, a list of a tall pair with an item a line: so both sides can be compared.
fn json(value: &Value, is_tall: bool) -> String {
    match value {
        Value::Array(items) if is_tall && !items.is_empty() => {
            // Without an indent, behind which a narrow page would break the line.
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            format!("[\n{}\n]", items.join(",\n"))
        }
        Value::Object(_) => serde_json::to_string_pretty(value).unwrap_or_default(),
        other => other.to_string(),
    }
}
