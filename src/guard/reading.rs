//! What an Application says in one of the hook's Helm parameters, in all the places where it can say it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::applications::{Application, Source};
use crate::yaml::{self, Node};

/// The variable in whose place Argo CD puts the address of the source itself
/// (<https://argo-cd.readthedocs.io/en/stable/user-guide/build-environment/>).
const OWN_ADDRESS: [&str; 2] = [
    "$ARGOCD_APP_SOURCE_REPO_URL",
    "${ARGOCD_APP_SOURCE_REPO_URL}",
];

/// What was found of one parameter.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The value that each source hands over: of its places (parameters, `valuesObject`, `values`) the first that has one.
    pub(super) effective: BTreeSet<String>,
    /// The values of all places.
    pub(super) all: BTreeSet<String>,
    /// Why there may be others.
    pub(super) doubts: BTreeSet<String>,
    /// Whether Argo CD fills in a value, so that what is written does not tell it.
    pub(super) is_filled_in: bool,
}

impl Reading {
    /// The one value that every place agrees on.
    pub(super) fn certain(&self) -> Option<&str> {
        match (self.doubts.is_empty(), self.all.len()) {
            (true, 1) => self.all.first().map(String::as_str),
            _ => None,
        }
    }

    /// Whether no place says anything.
    pub(super) fn is_absent(&self) -> bool {
        self.doubts.is_empty() && self.all.is_empty()
    }
}

/// What one place says.
enum Said {
    Nothing,
    Value(String),
    Doubt(String),
}

/// Looks for `parameter` (`hook.stage`) in every source.
pub(super) fn read(application: &Application, parameter: &str) -> Reading {
    let mut reading = Reading::default();
    for source in &application.sources {
        let mut effective = Vec::new();
        for place in in_source(source, parameter) {
            let mut values = Vec::new();
            for said in place {
                match said {
                    Said::Nothing => {}
                    Said::Doubt(doubt) => {
                        reading.doubts.insert(doubt);
                    }
                    Said::Value(value) if OWN_ADDRESS.contains(&value.as_str()) => {
                        values.push(source.repo_url.clone());
                    }
                    Said::Value(value) if value.contains('$') => {
                        reading.is_filled_in = true;
                        let doubt = format!("its {parameter} is {value}, which Argo CD fills in");
                        reading.doubts.insert(doubt);
                    }
                    Said::Value(value) if value.contains('\\') || value.contains("{{") => {
                        reading.is_filled_in = true;
                        let doubt =
                            format!("its {parameter} is {value}, which Helm may read otherwise");
                        reading.doubts.insert(doubt);
                    }
                    Said::Value(value) => values.push(value.trim().to_owned()),
                }
            }
            reading.all.extend(values.iter().cloned());
            if effective.is_empty() {
                effective = values;
            }
        }
        reading.effective.extend(effective);
    }
    if reading.all.len() > 1 {
        let values: Vec<&str> = reading.all.iter().map(String::as_str).collect();
        let doubt = format!("its {parameter} is {} at once", values.join(" and "));
        reading.doubts.insert(doubt);
    }
    reading
}

/// What the places of one source say, the strongest first
/// (<https://argo-cd.readthedocs.io/en/stable/user-guide/helm/#helm-value-precedence>).
fn in_source(source: &Source, parameter: &str) -> [Vec<Said>; 3] {
    let path: Vec<&str> = parameter.split('.').collect();
    let mut parameters: Vec<Said> = source
        .parameters
        .get(parameter)
        .into_iter()
        .flatten()
        .map(|value| Said::Value(value.clone()))
        .collect();
    if let Some(file) = source.file_parameters.get(parameter) {
        parameters.push(Said::Doubt(format!(
            "its {parameter} is taken from the file {file}"
        )));
    }
    let names = source
        .parameters
        .keys()
        .chain(source.file_parameters.keys());
    for above in names.filter(|name| is_above(name, parameter)) {
        parameters.push(Said::Doubt(format!(
            "its parameter {above} stands in the place of {parameter}"
        )));
    }
    let names = source
        .parameters
        .keys()
        .chain(source.file_parameters.keys());
    for several in names.filter(|name| may_hold(name, parameter)) {
        parameters.push(Said::Doubt(format!(
            "its parameter {several} may set {parameter}"
        )));
    }
    let mut object = Vec::new();
    if let Some(json) = source.values_object.as_deref() {
        object.push(in_json(json, &path, parameter));
        let root = serde_json::from_str(json).unwrap_or_default();
        below_json(&root, &path, &mut object);
    }
    let mut text = Vec::new();
    if let Some(yaml) = source.values.as_deref() {
        text.push(in_yaml(yaml, &path, parameter));
        if let Ok(root) = yaml::parse(yaml) {
            below_yaml(&root, &path, &mut text);
        }
    }
    [parameters, object, text]
}

/// `hook`, or `hook.stage[0]`, for `hook.stage`.
fn is_above(name: &str, parameter: &str) -> bool {
    let above = parameter.strip_prefix(name);
    let below = name.strip_prefix(parameter);
    above.is_some_and(|rest| rest.starts_with('.'))
        || below.is_some_and(|rest| rest.starts_with(['.', '[']))
}

/// Whether Helm, which cuts a name at commas and equals signs and drops backslashes, may set `parameter` by it.
fn may_hold(name: &str, parameter: &str) -> bool {
    let plain = name.replace('\\', "");
    name.contains([',', '='])
        || (plain.len() < name.len() && (plain == parameter || is_above(&plain, parameter)))
}

fn in_json(json: &str, path: &[&str], parameter: &str) -> Said {
    let Ok(root) = serde_json::from_str::<Value>(json) else {
        return Said::Doubt("its valuesObject could not be read".to_owned());
    };
    let mut here = &root;
    for name in path {
        match here {
            Value::Null => return Said::Nothing,
            Value::Object(keys) => match keys.get(*name) {
                Some(value) => here = value,
                None => return Said::Nothing,
            },
            _ => return odd(parameter, "valuesObject"),
        }
    }
    match here {
        Value::Null => Said::Nothing,
        Value::String(text) => Said::Value(text.clone()),
        Value::Number(number) => Said::Value(number.to_string()),
        _ => odd(parameter, "valuesObject"),
    }
}

/// What stands further down, where a chart hands it to one that it takes in, by that one's name or as `global`.
fn below_json(here: &Value, path: &[&str], said: &mut Vec<Said>) {
    let Value::Object(keys) = here else { return };
    for below in keys.values() {
        let found = path.iter().try_fold(below, |at, name| at.get(name));
        match found {
            Some(Value::String(text)) => said.push(Said::Value(text.clone())),
            Some(Value::Number(number)) => said.push(Said::Value(number.to_string())),
            _ => {}
        }
        below_json(below, path, said);
    }
}

/// The same for YAML.
fn below_yaml(here: &Node, path: &[&str], said: &mut Vec<Said>) {
    let yaml::Value::Mapping(entries) = here.value() else {
        return;
    };
    for (_, below) in entries {
        let found = path.iter().try_fold(below, |at, name| at.get(name));
        if let Some(scalar) = found
            && matches!(scalar.value(), yaml::Value::Scalar { .. })
            && !scalar.is_null()
        {
            said.push(Said::Value(scalar.raw_text().to_owned()));
        }
        below_yaml(below, path, said);
    }
}

fn in_yaml(text: &str, path: &[&str], parameter: &str) -> Said {
    let root = match yaml::parse(text) {
        Ok(root) => root,
        Err(error) => {
            let place = error.place();
            return Said::Doubt(format!("its values could not be read: {place}: {error}"));
        }
    };
    let mut here: &Node = &root;
    for name in path {
        if here.is_null() {
            return Said::Nothing;
        }
        if !matches!(here.value(), yaml::Value::Mapping(_)) {
            return odd(parameter, "values");
        }
        match here.get(name) {
            Some(value) => here = value,
            None => return Said::Nothing,
        }
    }
    if here.is_null() {
        return Said::Nothing;
    }
    match here.text() {
        Ok(text) => Said::Value(text.to_owned()),
        Err(_) => odd(parameter, "values"),
    }
}

fn odd(parameter: &str, place: &str) -> Said {
    Said::Doubt(format!("its {parameter} in {place} is no text"))
}
