//! What a destroy forgets instead of destroying: Kubernetes objects that live in a namespace. The prune took them with
//! their namespace, and with it the rights to read them, so Terraform could not even refresh them.

use serde::{Deserialize, Serialize};

use super::inventory::{Instance, Inventory, Object};

/// An object that is dropped from the state and left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forgotten {
    /// Its address.
    pub address: String,
    /// `kubernetes_secret`, `Secret` of a manifest, …
    pub kind: String,
    /// The namespace that it lives in.
    pub namespace: String,
    /// Its name there, where the state has it.
    pub name: Option<String>,
    /// Why it is not gone with the stage's namespace.
    pub stays: Option<Stays>,
}

/// Why a forgotten object, or what belongs to it, is not gone with the stage's namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stays {
    /// It lives in another namespace than the stage's.
    OtherNamespace,
    /// A Helm release may have objects outside of its namespace.
    HelmRelease,
}

impl std::fmt::Display for Stays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stays::OtherNamespace => "outside the stage's namespace: it stays behind",
            Stays::HelmRelease => {
                "what the release has outside of its namespace stays behind, as does the release where the namespace lives"
            }
        })
    }
}

/// `<address> (<kind> <namespace>/<name>)`, and why it stays behind.
impl std::fmt::Display for Forgotten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Forgotten {
            address,
            kind,
            namespace,
            name,
            stays,
        } = self;
        match name {
            Some(name) => write!(f, "{address}: {kind} {namespace}/{name}")?,
            None => write!(f, "{address}: {kind} in {namespace}")?,
        }
        match stays {
            Some(stays) => write!(f, " ({stays})"),
            None => Ok(()),
        }
    }
}

/// The namespaced Kubernetes objects of a state, in its order. `stage` is the stage's own namespace, where it is known.
pub fn namespaced(inventory: &Inventory, stage: Option<&str>) -> Vec<Forgotten> {
    let instances = inventory.instances().iter();
    instances.filter_map(|i| forgotten(i, stage)).collect()
}

fn forgotten(instance: &Instance, stage: Option<&str>) -> Option<Forgotten> {
    // An instance is dropped whole: where one of its objects lives in no namespace, Terraform destroys all of them.
    if instance
        .objects()
        .any(|o| placed(&instance.kind, o).is_none())
    {
        return None;
    }
    // A deposed object of another namespace than the current one's would be dropped with it: there is one line for both.
    let (kind, namespace, name) = instance.objects().find_map(|o| placed(&instance.kind, o))?;
    let elsewhere = stage.is_some_and(|stage| stage != namespace);
    let stays = match instance.kind.as_str() {
        _ if elsewhere => Some(Stays::OtherNamespace),
        "helm_release" => Some(Stays::HelmRelease),
        _ => None,
    };
    Some(Forgotten {
        address: instance.address.clone(),
        kind,
        namespace,
        name,
        stays,
    })
}

/// Kind, namespace and name of a namespaced object.
fn placed(kind: &str, object: &Object) -> Option<(String, String, Option<String>)> {
    let paths: &[(&str, &str, Option<&str>)] = match kind {
        // A value of any type is kept with its type beside it.
        "kubernetes_manifest" => &[
            (
                "object.value.metadata.namespace",
                "object.value.metadata.name",
                Some("object.value.kind"),
            ),
            (
                "object.metadata.namespace",
                "object.metadata.name",
                Some("object.kind"),
            ),
            (
                "manifest.value.metadata.namespace",
                "manifest.value.metadata.name",
                Some("manifest.value.kind"),
            ),
            (
                "manifest.metadata.namespace",
                "manifest.metadata.name",
                Some("manifest.kind"),
            ),
        ],
        "kubectl_manifest" => &[("namespace", "name", Some("kind"))],
        "helm_release" => &[("namespace", "name", None)],
        kind if kind.starts_with("kubernetes_") => {
            &[("metadata.0.namespace", "metadata.0.name", None)]
        }
        _ => &[],
    };
    paths.iter().find_map(|(namespace, name, inner)| {
        let namespace = object.text(namespace)?;
        let inner = inner.and_then(|path| object.text(path));
        Some((
            inner.unwrap_or_else(|| kind.to_owned()),
            namespace,
            object.text(name),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(resources: &str, stage: Option<&str>) -> Vec<String> {
        let state = format!(r#"{{"version": 4, "resources": [{resources}]}}"#);
        let inventory = Inventory::read(state.as_bytes()).unwrap();
        namespaced(&inventory, stage)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn resource(kind: &str, instances: &str) -> String {
        format!(
            r#"{{"mode": "managed", "type": "{kind}", "name": "n", "instances": [{instances}]}}"#
        )
    }

    fn metadata(metadata: &str) -> String {
        format!(r#"{{"attributes": {{"metadata": [{metadata}]}}}}"#)
    }

    #[test]
    fn typed_objects_are_forgotten_by_the_namespace_of_their_metadata_and_cluster_wide_ones_are_not()
     {
        let in_shop = metadata(r#"{"name": "db", "namespace": "shop-prd"}"#);
        assert_eq!(
            lines(&resource("kubernetes_secret_v1", &in_shop), None),
            ["kubernetes_secret_v1.n: kubernetes_secret_v1 shop-prd/db"]
        );
        for cluster_wide in [
            resource(
                "kubernetes_persistent_volume",
                &metadata(r#"{"name": "db"}"#),
            ),
            resource(
                "kubernetes_namespace",
                &metadata(r#"{"name": "x", "namespace": ""}"#),
            ),
            resource(
                "kubernetes_cluster_role",
                &metadata(r#"{"name": "x", "namespace": null}"#),
            ),
            resource("aws_thing", &in_shop),
        ] {
            assert!(lines(&cluster_wide, None).is_empty(), "{cluster_wide}");
        }
    }

    #[test]
    fn manifests_are_forgotten_by_their_object_however_the_state_keeps_it() {
        let object = r#"{"kind": "Certificate", "metadata": {"name": "c", "namespace": "ns"}}"#;
        for attributes in [
            format!(r#""object": {{"type": ["object", {{}}], "value": {object}}}"#),
            format!(r#""object": {object}"#),
            format!(r#""manifest": {{"type": ["object", {{}}], "value": {object}}}"#),
            format!(r#""object": null, "manifest": {object}"#),
        ] {
            let instance = format!(r#"{{"attributes": {{{attributes}}}}}"#);
            assert_eq!(
                lines(&resource("kubernetes_manifest", &instance), None),
                ["kubernetes_manifest.n: Certificate ns/c"]
            );
        }
        let cluster_wide =
            r#"{"attributes": {"object": {"kind": "ClusterIssuer", "metadata": {"name": "c"}}}}"#;
        assert!(lines(&resource("kubernetes_manifest", cluster_wide), None).is_empty());
        let kubectl = r#"{"attributes": {"kind": "Issuer", "name": "i", "namespace": "ns"}}"#;
        assert_eq!(
            lines(&resource("kubectl_manifest", kubectl), None),
            ["kubectl_manifest.n: Issuer ns/i"]
        );
    }

    #[test]
    fn what_lies_outside_the_stages_namespace_and_a_helm_release_stay_behind() {
        let two = format!(
            "{}, {}",
            metadata(r#"{"name": "here", "namespace": "shop-prd"}"#).replacen(
                '{',
                r#"{"index_key": "a.b", "#,
                1
            ),
            metadata(r#"{"name": "there", "namespace": "monitoring"}"#).replacen(
                '{',
                r#"{"index_key": "c", "#,
                1
            )
        );
        let release = r#"{"attributes": {"name": "redis", "namespace": "shop-prd"}}"#;
        let all = format!(
            "{}, {}",
            resource("kubernetes_config_map", &two),
            resource("helm_release", release)
        );
        assert_eq!(
            lines(&all, Some("shop-prd")),
            [
                r#"kubernetes_config_map.n["a.b"]: kubernetes_config_map shop-prd/here"#,
                r#"kubernetes_config_map.n["c"]: kubernetes_config_map monitoring/there (outside the stage's namespace: it stays behind)"#,
                "helm_release.n: helm_release shop-prd/redis (what the release has outside of its namespace stays behind, as does the release where the namespace lives)",
            ]
        );
        assert!(
            !lines(&all, None)
                .iter()
                .any(|line| line.contains("outside the stage's"))
        );
    }

    #[test]
    fn an_instance_with_a_deposed_object_alone_is_forgotten_too() {
        let deposed = r#"{"deposed": "0a0b", "attributes": {"metadata": [{"name": "x", "namespace": "ns"}]}}"#;
        assert_eq!(
            lines(&resource("kubernetes_secret", deposed), None),
            ["kubernetes_secret.n: kubernetes_secret ns/x"]
        );
    }

    #[test]
    fn an_instance_of_which_one_object_lives_in_no_namespace_is_not_forgotten() {
        let issuer = |kind: &str, namespace: &str, more: &str| {
            format!(
                r#"{{{more}"attributes": {{"object": {{"kind": "{kind}", "metadata": {{"name": "i"{namespace}}}}}}}}}"#
            )
        };
        let in_namespace = r#", "namespace": "ns""#;
        let deposed = r#""deposed": "0a0b", "#;
        for two in [
            [
                issuer("ClusterIssuer", "", ""),
                issuer("Issuer", in_namespace, deposed),
            ],
            [
                issuer("Issuer", in_namespace, ""),
                issuer("ClusterIssuer", "", deposed),
            ],
        ] {
            let all = resource("kubernetes_manifest", &two.join(", "));
            assert!(lines(&all, None).is_empty(), "{all}");
        }
    }
}
