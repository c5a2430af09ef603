//! GitHub's OpenAPI description, and what does not keep to it. `tests/github/extract` makes the file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{Asked, Content, Reply, locked};

/// Answers that any request may have, although few operations list them.
const EVERYWHERE: [u16; 10] = [301, 307, 401, 403, 404, 409, 422, 429, 500, 502];

pub struct Contract {
    description: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Contract {
    /// The same for all tests: what was made of it once is kept.
    pub fn read() -> &'static Contract {
        static CONTRACT: OnceLock<Contract> = OnceLock::new();
        CONTRACT.get_or_init(|| {
            let text = include_str!("../../github/openapi.json");
            Contract {
                description: serde_json::from_str(text).unwrap(),
                validators: Mutex::default(),
            }
        })
    }

    /// An answer to this operation, as GitHub's own example has it.
    pub fn example(&self, method: &str, template: &str) -> Value {
        let mut example = self.description["paths"][template][method]["example"].clone();
        // Two of GitHub's examples lack what its schemas require.
        match (method, template) {
            ("get", "/repos/{owner}/{repo}") => {
                example["language"] = Value::Null;
                example["source"]["language"] = Value::Null;
            }
            ("get", "/repos/{owner}/{repo}/commits/{ref}") => example["files"] = json!([]),
            _ => {}
        }
        example
    }

    /// Everything about a request and its answer that is not as described.
    pub fn offences(&self, template: &str, asked: &Asked, reply: &Reply) -> Vec<String> {
        let method = asked.method.as_str().to_lowercase();
        let name = format!("{} {}", asked.method, asked.path);
        let operation = &self.description["paths"][template][&method];
        if operation.is_null() {
            return vec![format!("{name}: GitHub has no {method} {template}")];
        }
        let mut offences = self.of_query(operation, &asked.query);
        let request = self.resolved(&operation["requestBody"]);
        let schema = &request["content"]["application/json"]["schema"];
        match (&asked.body, schema.is_null()) {
            (Some(_), true) => offences.push("its body is not asked for".to_owned()),
            (Some(body), false) => {
                offences.extend(self.invalid(&format!("{method} {template}"), schema, body));
                self.unknown(schema, body, "", &mut offences);
            }
            (None, _) if request["required"] == true => {
                offences.push("its body is missing".to_owned());
            }
            (None, _) => {}
        }
        offences.extend(self.of_reply(&format!("{method} {template}"), operation, reply));
        offences
            .iter()
            .map(|offence| format!("{name}: {offence}"))
            .collect()
    }

    fn of_query(&self, operation: &Value, query: &str) -> Vec<String> {
        let parameters = operation["parameters"].as_array().unwrap();
        let known: Vec<&Value> = parameters.iter().map(|p| self.resolved(p)).collect();
        let names = query.split('&').filter_map(|pair| pair.split('=').next());
        // The number of a page is in the link that the page before it answered with.
        let pages = !operation["responses"]["200"]["headers"]["Link"].is_null();
        names
            .filter(|name| !name.is_empty())
            .filter(|name| !pages || *name != "page")
            .filter(|name| {
                !known
                    .iter()
                    .any(|p| p["in"] == "query" && p["name"] == *name)
            })
            .map(|name| format!("it has no parameter {name}"))
            .collect()
    }

    fn of_reply(&self, key: &str, operation: &Value, reply: &Reply) -> Vec<String> {
        let status = reply.status.to_string();
        let listed = self.resolved(&operation["responses"][&status]);
        if listed.is_null() && !EVERYWHERE.contains(&reply.status) {
            return vec![format!("it is never answered with {status}")];
        }
        let schema = match &listed["content"]["application/json"]["schema"] {
            Value::Null if reply.status >= 300 => {
                json!({ "$ref": "#/components/schemas/basic-error" })
            }
            Value::Null => return Vec::new(),
            schema => schema.clone(),
        };
        match &reply.content {
            Content::Json(value) => self.invalid(&format!("{key} {status}"), &schema, value),
            Content::Raw(_) | Content::None => Vec::new(),
        }
    }

    fn invalid(&self, key: &str, schema: &Value, value: &Value) -> Vec<String> {
        let validator = Arc::clone(
            locked(&self.validators)
                .entry(key.to_owned())
                .or_insert_with(|| {
                    let whole =
                        json!({ "allOf": [schema], "components": self.description["components"] });
                    Arc::new(jsonschema::validator_for(&whole).unwrap())
                }),
        );
        let errors = validator.iter_errors(value).take(5);
        errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    /// Members that the description does not have: JSON Schema would let them pass, and GitHub would leave them aside.
    fn unknown(&self, schema: &Value, value: &Value, at: &str, offences: &mut Vec<String>) {
        let schema = self.resolved(schema);
        if let (Some(members), Some(known)) = (value.as_object(), schema["properties"].as_object())
        {
            for (name, member) in members {
                match known.get(name) {
                    None => offences.push(format!("{at}/{name}: no such member is known")),
                    Some(schema) => self.unknown(schema, member, &format!("{at}/{name}"), offences),
                }
            }
        }
        if let (Some(items), false) = (value.as_array(), schema["items"].is_null()) {
            for item in items {
                self.unknown(&schema["items"], item, &format!("{at}/*"), offences);
            }
        }
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => self.description.pointer(&reference[1..]).unwrap(),
            None => value,
        }
    }
}
