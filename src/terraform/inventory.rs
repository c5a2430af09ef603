//! What a state lists: every object, by the address that Terraform knows it by, with its attributes.
//! The format is Terraform's own, version 4
//! (<https://github.com/hashicorp/terraform/blob/v1.11.4/internal/states/statefile/version4.go>).

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::state::StateError;

/// All resource instances of a state, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    instances: Vec<Instance>,
}

/// One resource instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// `module.m["a"].type.name[0]`, as Terraform writes it.
    pub address: String,
    /// `aws_s3_bucket`, …
    pub kind: String,
    /// `aws_s3_bucket.logs`: the resource as its own module calls it.
    pub resource: String,
    /// As the state names it: `provider["registry.terraform.io/hashicorp/aws"].alias`, behind a `module.m.` where it is
    /// configured in there, with a key at the end where OpenTofu made it by `for_each`.
    pub provider: String,
    /// Its object; none where only deposed ones are left.
    pub current: Option<Object>,
    /// Objects that a failed replacement left behind, by their keys.
    pub deposed: Vec<(String, Object)>,
}

/// One object of an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    attributes: Value,
    /// The top-level attributes that hold something sensitive.
    sensitive: Vec<String>,
}

impl Object {
    /// An attribute by its path, `metadata.0.namespace`, unless it is sensitive.
    pub fn attribute(&self, path: &str) -> Option<&Value> {
        let top = path.split('.').next().unwrap_or_default();
        if self.sensitive.iter().any(|sensitive| sensitive == top) {
            return None;
        }
        self.attributes
            .pointer(&format!("/{}", path.replace('.', "/")))
    }

    /// The same as text: a text that is not empty, or a number.
    pub fn text(&self, path: &str) -> Option<String> {
        match self.attribute(path)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

impl Instance {
    /// Its objects, the deposed ones included.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        let deposed = self.deposed.iter().map(|(_, object)| object);
        self.current.iter().chain(deposed)
    }
}

impl Inventory {
    /// Reads the managed resources of a state; what data sources have read is not listed.
    pub fn read(state: &[u8]) -> Result<Inventory, StateError> {
        let state: StateJson = serde_json::from_slice(state).map_err(StateError::NotAState)?;
        let mut inventory = Inventory::default();
        for resource in state.resources {
            if resource.mode != "managed" {
                continue;
            }
            inventory.add(resource);
        }
        Ok(inventory)
    }

    fn add(&mut self, resource: ResourceJson) {
        let base = match &resource.module {
            Some(module) => format!("{module}.{}.{}", resource.kind, resource.name),
            None => format!("{}.{}", resource.kind, resource.name),
        };
        let mut places = HashMap::new();
        for instance in resource.instances {
            let address = format!("{base}{}", key_of(instance.index_key.as_ref()));
            let object = Object {
                sensitive: instance.sensitive(),
                attributes: instance.attributes,
            };
            let place = *places
                .entry(address.clone())
                .or_insert(self.instances.len());
            if place == self.instances.len() {
                self.instances.push(Instance {
                    address,
                    kind: resource.kind.clone(),
                    resource: format!("{}.{}", resource.kind, resource.name),
                    provider: instance
                        .provider
                        .unwrap_or_else(|| resource.provider.clone()),
                    current: None,
                    deposed: Vec::new(),
                });
            }
            let Some(entry) = self.instances.get_mut(place) else {
                continue;
            };
            match instance.deposed {
                Some(key) => entry.deposed.push((key, object)),
                None => entry.current = Some(object),
            }
        }
    }

    /// Every instance.
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// The instance at this address.
    pub fn at(&self, address: &str) -> Option<&Instance> {
        self.instances.iter().find(|i| i.address == address)
    }

    /// How many objects there are, the deposed ones included.
    pub fn objects(&self) -> usize {
        self.instances.iter().map(|i| i.objects().count()).sum()
    }
}

/// `[0]`, `["key"]`, or nothing.
fn key_of(key: Option<&Value>) -> String {
    match key {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => format!("[{}]", quoted(text)),
        Some(other) => format!("[{other}]"),
    }
}

/// A text as Terraform quotes it in an address
/// (<https://github.com/hashicorp/terraform/blob/v1.11.4/internal/addrs/instance_key.go>).
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '$' | '%' => {
                quoted.push(c);
                if rest.peek() == Some(&'{') {
                    quoted.push(c);
                }
            }
            c if is_printable(c) => quoted.push(c),
            c if u32::from(c) > 0xffff => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether it stands for itself: what Unicode calls a letter, mark, number, punctuation or symbol, and the plain space.
fn is_printable(c: char) -> bool {
    // A mark is escaped only at the beginning of a text.
    !c.is_control() && format!("a{c}").escape_debug().count() <= 3
}

#[derive(Deserialize)]
struct StateJson {
    #[serde(default)]
    resources: Vec<ResourceJson>,
}

#[derive(Deserialize)]
struct ResourceJson {
    module: Option<String>,
    mode: String,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    instances: Vec<InstanceJson>,
}

#[derive(Deserialize)]
struct InstanceJson {
    index_key: Option<Value>,
    /// OpenTofu writes it here instead where a resource's instances have several.
    provider: Option<String>,
    deposed: Option<String>,
    #[serde(default)]
    attributes: Value,
    #[serde(default)]
    sensitive_attributes: Value,
}

impl InstanceJson {
    /// The first step of each path that is marked.
    fn sensitive(&self) -> Vec<String> {
        let paths = self.sensitive_attributes.as_array();
        let first = |path: &Value| Some(path.get(0)?.get("value")?.as_str()?.to_owned());
        paths.into_iter().flatten().filter_map(first).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(resources: &str) -> Vec<String> {
        let state = format!(r#"{{"version": 4, "resources": [{resources}]}}"#);
        let inventory = Inventory::read(state.as_bytes()).unwrap();
        inventory
            .instances()
            .iter()
            .map(|i| i.address.clone())
            .collect()
    }

    #[test]
    fn an_address_is_written_as_terraform_writes_it() {
        let keys = [
            (r#""c]d \" e""#, r#"["c]d \" e"]"#),
            (r#""$x""#, r#"["$x"]"#),
            (r#""${x}""#, r#"["$${x}"]"#),
            (r#""%{if}""#, r#"["%%{if}"]"#),
            (r#""{'\u0000""#, r#"["{'\u0000"]"#),
            (r#""100%""#, r#"["100%"]"#),
            (r#""back\\slash""#, r#"["back\\slash"]"#),
            (r#""ctl\u0001""#, r#"["ctl\u0001"]"#),
            (r#""emoji😀""#, r#"["emoji😀"]"#),
            (r#""nbsp\u00a0""#, r#"["nbsp\u00a0"]"#),
            (r#""new\nline""#, r#"["new\nline"]"#),
            (r#""tab\tcr\r""#, r#"["tab\tcr\r"]"#),
            (r#""zw\u200b""#, r#"["zw\u200b"]"#),
            (r#""mark e\u0301""#, "[\"mark e\u{301}\"]"),
            (r#""""#, r#"[""]"#),
            ("7", "[7]"),
            ("null", ""),
        ];
        for (key, written) in keys {
            let resource = format!(
                r#"{{"mode": "managed", "type": "t", "name": "n", "instances": [{{"index_key": {key}}}]}}"#
            );
            assert_eq!(addresses(&resource), [format!("t.n{written}")]);
        }
        let in_module = r#"{"module": "module.m[\"a.b\"].module.n[0]", "mode": "managed", "type": "t", "name": "n", "instances": [{}]}"#;
        assert_eq!(addresses(in_module), [r#"module.m["a.b"].module.n[0].t.n"#]);
    }

    #[test]
    fn an_instance_of_deposed_objects_alone_counts_and_data_sources_do_not() {
        let state = br#"{"version": 4, "resources": [
            {"mode": "managed", "type": "t", "name": "n", "provider": "p", "instances": [
                {"index_key": 0, "deposed": "0a0b", "attributes": {"id": "old"}},
                {"index_key": 1, "attributes": {"id": "new"}},
                {"index_key": 1, "deposed": "0c0d", "attributes": {"id": "old"}}]},
            {"mode": "data", "type": "t", "name": "d", "instances": [{}]},
            {"mode": "managed", "type": "t", "name": "none", "instances": []}]}"#;
        let inventory = Inventory::read(state).unwrap();
        let [first, second] = inventory.instances() else {
            panic!("{inventory:?}")
        };
        assert_eq!((first.address.as_str(), first.deposed.len()), ("t.n[0]", 1));
        assert!(first.current.is_none() && second.current.is_some());
        assert_eq!(inventory.objects(), 3);
        assert_eq!(inventory.at("t.n[1]").map(|i| i.deposed.len()), Some(1));
    }

    #[test]
    fn an_instances_own_provider_counts_where_opentofu_writes_one() {
        let state = br#"{"version": 4, "resources": [
            {"mode": "managed", "type": "t", "name": "a", "provider": "provider[\"p\"]", "instances": [{}]},
            {"mode": "managed", "type": "t", "name": "b", "instances": [
                {"index_key": "x", "provider": "provider[\"p\"].by[\"x\"]"},
                {"index_key": "y", "provider": "provider[\"p\"].by[\"y\"]"}]}]}"#;
        let inventory = Inventory::read(state).unwrap();
        let providers: Vec<&str> = inventory
            .instances()
            .iter()
            .map(|i| i.provider.as_str())
            .collect();
        assert_eq!(
            providers,
            [
                r#"provider["p"]"#,
                r#"provider["p"].by["x"]"#,
                r#"provider["p"].by["y"]"#
            ]
        );
    }

    #[test]
    fn a_sensitive_attribute_is_not_given() {
        let state = br#"{"version": 4, "resources": [{"mode": "managed", "type": "t", "name": "n", "instances": [
            {"attributes": {"id": "x", "size": 3, "password": "p", "list": [{"a": "b"}]},
             "sensitive_attributes": [[{"type": "get_attr", "value": "password"}],
                                      [{"type": "get_attr", "value": "list"}, {"type": "index", "value": {}}]]}]}]}"#;
        let inventory = Inventory::read(state).unwrap();
        let object = inventory.instances()[0].current.as_ref().unwrap();
        assert_eq!(object.text("id").as_deref(), Some("x"));
        assert_eq!(object.text("size").as_deref(), Some("3"));
        assert_eq!(object.text("password"), None);
        assert_eq!(object.text("list.0.a"), None);
        assert_eq!(object.text("nothing"), None);
    }
}
