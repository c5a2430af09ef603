//! What must not be shown: the values of secret variables, in every form in which Terraform and we print them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::transport::strip::stripped;

/// Shorter values are not masked: they would be found in words.
const SHORTEST: usize = 8;
/// What stands for a secret.
const MASK: &[u8] = b"***";

/// The secrets, the longer first: one that holds another one is masked whole.
#[derive(Clone, Default)]
pub struct Mask {
    secrets: Vec<Vec<u8>>,
}

impl Mask {
    /// Masks these values from now on, where they have at least eight characters: as they are, and as Terraform prints
    /// them in quotes and in JSON.
    pub fn add(&mut self, secrets: Vec<String>) {
        let mut forms = BTreeSet::new();
        for secret in secrets {
            add_forms(&secret, &mut forms);
        }
        // What is searched has no control sequences any more.
        self.secrets
            .extend(forms.iter().map(|form| stripped(form.as_bytes())));
        self.secrets.retain(|form| form.len() >= SHORTEST);
        self.secrets
            .sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.secrets.dedup();
    }

    /// Every form of every secret, the longer first.
    pub fn secrets(&self) -> &[Vec<u8>] {
        &self.secrets
    }

    /// The text with a mark in the place of each secret.
    pub fn masked(&self, line: &[u8]) -> Vec<u8> {
        let mut line = line.to_vec();
        for secret in &self.secrets {
            while let Some(at) = find(&line, secret) {
                line.splice(at..at + secret.len(), MASK.iter().copied());
            }
        }
        line
    }

    /// The same of a value. It keeps its control characters, unless they could hide a secret.
    pub fn masked_value(&self, text: &str) -> String {
        let plain = stripped(text.as_bytes());
        let holds = |secret: &Vec<u8>| find(&plain, secret).is_some();
        match self.secrets.iter().any(holds) {
            true => String::from_utf8_lossy(&self.masked(&plain)).into_owned(),
            false => text.to_owned(),
        }
    }
}

/// Everything that would tell this secret, each without an end of line.
fn add_forms(secret: &str, forms: &mut BTreeSet<String>) {
    // A secret of several lines (a key) is met line by line, and in quotes as a whole.
    for value in std::iter::once(secret).chain(secret.lines()) {
        if value.chars().count() < SHORTEST || value.trim().is_empty() {
            continue;
        }
        let mut known = BTreeSet::from([value.to_owned()]);
        // Twice: what `jsonencode` gives is printed within quotes.
        for _ in 0..2 {
            let escaped = known.iter().flat_map(|form| {
                let json = in_json(form);
                [in_quotes(form), in_gos_json(&json), json]
            });
            known.extend(escaped.collect::<Vec<_>>());
        }
        forms.extend(known.into_iter().filter(|form| !form.contains('\n')));
    }
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(secret) {
        add_leaves(&value, forms);
    }
}

/// The texts within a JSON document are secrets of their own.
fn add_leaves(value: &Value, forms: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => add_forms(text, forms),
        Value::Array(items) => items.iter().for_each(|item| add_leaves(item, forms)),
        Value::Object(members) => members.values().for_each(|item| add_leaves(item, forms)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// As Go's `%q` writes it, which Terraform uses for HCL's strings.
fn in_quotes(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\u{b}' => quoted.push_str("\\v"),
            '\0'..='\u{1f}' | '\u{7f}' => {
                quoted.push_str(&format!("\\x{:02x}", u32::from(character)));
            }
            _ => quoted.push(character),
        }
    }
    quoted
}

/// As JSON writes it.
fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted
        .get(1..quoted.len() - 1)
        .unwrap_or_default()
        .to_owned()
}

/// JSON as Go, and with it `jsonencode`, writes it: safe within HTML.
fn in_gos_json(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Where the pattern begins.
pub(super) fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len())
        .position(|window| window == pattern)
}
