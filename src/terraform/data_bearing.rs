//! Which resources hold data that a destroy takes with them, and by which of their attributes a person knows them.

use super::inventory::{Instance, Object};

/// What a resource holds, in one word or two, and what identifies it outside of Terraform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataBearing {
    /// `database`, `bucket`, …
    pub what: &'static str,
    /// `bucket=invoices-prd`, …; none where the state has none of the attributes, or they are sensitive.
    pub identity: Vec<(String, String)>,
}

/// Types that are known by name, what they hold, and the attributes that identify one.
const KNOWN: &[(&str, &str, &[&str])] = &[
    // Amazon (https://registry.terraform.io/providers/hashicorp/aws)
    ("aws_db_instance", "database", &["identifier", "arn"]),
    (
        "aws_rds_cluster",
        "database",
        &["cluster_identifier", "arn"],
    ),
    ("aws_docdb_cluster", "database", &["cluster_identifier"]),
    ("aws_neptune_cluster", "database", &["cluster_identifier"]),
    ("aws_redshift_cluster", "database", &["cluster_identifier"]),
    ("aws_dynamodb_table", "table", &["name", "arn"]),
    (
        "aws_elasticache_replication_group",
        "cache",
        &["replication_group_id"],
    ),
    ("aws_opensearch_domain", "search index", &["domain_name"]),
    ("aws_elasticsearch_domain", "search index", &["domain_name"]),
    ("aws_s3_bucket", "bucket", &["bucket", "arn"]),
    ("aws_s3_object", "object", &["bucket", "key"]),
    ("aws_ebs_volume", "volume", &["id"]),
    ("aws_efs_file_system", "file system", &["id"]),
    ("aws_ecr_repository", "images", &["repository_url", "name"]),
    ("aws_kms_key", "key", &["arn"]),
    ("aws_secretsmanager_secret", "secret", &["name", "arn"]),
    ("aws_backup_vault", "backups", &["name"]),
    ("aws_sqs_queue", "queue", &["name", "url"]),
    ("aws_kinesis_stream", "stream", &["name"]),
    ("aws_cloudwatch_log_group", "logs", &["name"]),
    // Google (https://registry.terraform.io/providers/hashicorp/google)
    (
        "google_sql_database_instance",
        "database",
        &["name", "connection_name"],
    ),
    ("google_sql_database", "database", &["instance", "name"]),
    ("google_storage_bucket", "bucket", &["name"]),
    ("google_compute_disk", "volume", &["name", "zone"]),
    ("google_filestore_instance", "file system", &["name"]),
    (
        "google_bigquery_dataset",
        "dataset",
        &["project", "dataset_id"],
    ),
    (
        "google_bigquery_table",
        "table",
        &["dataset_id", "table_id"],
    ),
    ("google_spanner_database", "database", &["instance", "name"]),
    ("google_bigtable_instance", "database", &["name"]),
    (
        "google_artifact_registry_repository",
        "images",
        &["repository_id"],
    ),
    ("google_kms_crypto_key", "key", &["name"]),
    ("google_secret_manager_secret", "secret", &["secret_id"]),
    // Microsoft (https://registry.terraform.io/providers/hashicorp/azurerm)
    ("azurerm_storage_account", "storage", &["name", "id"]),
    (
        "azurerm_storage_container",
        "bucket",
        &["storage_account_name", "name"],
    ),
    ("azurerm_managed_disk", "volume", &["name", "id"]),
    ("azurerm_mssql_database", "database", &["name", "id"]),
    (
        "azurerm_postgresql_flexible_server",
        "database",
        &["name", "fqdn"],
    ),
    (
        "azurerm_mysql_flexible_server",
        "database",
        &["name", "fqdn"],
    ),
    (
        "azurerm_cosmosdb_account",
        "database",
        &["name", "endpoint"],
    ),
    (
        "azurerm_container_registry",
        "images",
        &["login_server", "name"],
    ),
    ("azurerm_key_vault", "secrets", &["name", "vault_uri"]),
    // Hosters
    ("hcloud_volume", "volume", &["name", "id"]),
    ("hcloud_server", "disk", &["name", "id"]),
    ("digitalocean_volume", "volume", &["name", "id"]),
    ("digitalocean_database_cluster", "database", &["name", "id"]),
    ("digitalocean_spaces_bucket", "bucket", &["name"]),
    (
        "openstack_blockstorage_volume_v3",
        "volume",
        &["name", "id"],
    ),
    ("openstack_objectstorage_container_v1", "bucket", &["name"]),
    ("scaleway_object_bucket", "bucket", &["name"]),
    ("cloudflare_r2_bucket", "bucket", &["name"]),
    // By oneself
    ("postgresql_database", "database", &["name"]),
    ("postgresql_schema", "schema", &["database", "name"]),
    ("mysql_database", "database", &["name"]),
    ("mongodbatlas_cluster", "database", &["name"]),
    ("influxdb-v2_bucket", "bucket", &["name"]),
    ("minio_s3_bucket", "bucket", &["bucket"]),
    ("minio_bucket", "bucket", &["name"]),
    ("garage_bucket", "bucket", &["id"]),
    ("ceph_rbd_image", "image", &["pool", "name"]),
    ("cephfs_subvolume", "volume", &["name"]),
    ("zfs_dataset", "dataset", &["name"]),
    ("zfs_volume", "volume", &["name"]),
    ("truenas_dataset", "dataset", &["pool", "name"]),
    ("libvirt_volume", "volume", &["pool", "name"]),
    (
        "proxmox_virtual_environment_vm",
        "disk",
        &["node_name", "vm_id", "name"],
    ),
    ("vsphere_virtual_machine", "disk", &["name", "uuid"]),
    ("docker_volume", "volume", &["name"]),
    ("lxd_volume", "volume", &["pool", "name"]),
    ("incus_storage_volume", "volume", &["pool", "name"]),
    ("keycloak_realm", "realm", &["realm"]),
    ("vault_mount", "secrets", &["path"]),
    ("kafka_topic", "topic", &["name"]),
    ("github_repository", "repository", &["full_name"]),
    ("gitlab_project", "repository", &["path_with_namespace"]),
    // Kubernetes (https://registry.terraform.io/providers/hashicorp/kubernetes)
    ("kubernetes_persistent_volume", "volume", PV),
    ("kubernetes_persistent_volume_v1", "volume", PV),
    ("kubernetes_persistent_volume_claim", "volume", NAMESPACED),
    (
        "kubernetes_persistent_volume_claim_v1",
        "volume",
        NAMESPACED,
    ),
    (
        "kubernetes_namespace",
        "namespace with all that is in it",
        &["metadata.0.name"],
    ),
    (
        "kubernetes_namespace_v1",
        "namespace with all that is in it",
        &["metadata.0.name"],
    ),
];
const PV: &[&str] = &["metadata.0.name"];
const NAMESPACED: &[&str] = &["metadata.0.namespace", "metadata.0.name"];

/// Types of webhooks by which a repository tells of its pushes.
pub const WEBHOOKS: &[&str] = &[
    "github_repository_webhook",
    "gitlab_project_hook",
    "gitea_repository_webhook",
    "forgejo_repository_webhook",
    "bitbucket_hook",
    "azuredevops_servicehook_webhook_tfs",
];

/// What is in a type's name where the type is not known: `_`-separated words, each with what it holds.
const WORDS: &[(&str, &str)] = &[
    ("database", "database"),
    ("db", "database"),
    ("bucket", "bucket"),
    ("volume", "volume"),
    ("subvolume", "volume"),
    ("disk", "volume"),
    ("dataset", "dataset"),
    ("image", "image"),
    ("filesystem", "file system"),
    ("share", "file system"),
    ("snapshot", "snapshot"),
    ("backup", "backups"),
    ("repository", "repository"),
    ("topic", "topic"),
    ("queue", "queue"),
    ("table", "table"),
    ("storage", "storage"),
];
/// Words that make of a `bucket` or a `database` something that is set on one, and not the thing itself.
const SETTINGS: &[&str] = &[
    "policy",
    "acl",
    "attachment",
    "configuration",
    "config",
    "rule",
    "rules",
    "grant",
    "role",
    "user",
    "users",
    "permission",
    "permissions",
    "binding",
    "member",
    "iam",
    "access",
    "block",
    "versioning",
    "encryption",
    "lifecycle",
    "notification",
    "webhook",
    "collaborator",
    "association",
    "parameter",
    "option",
    "subnet",
    "route",
    "key",
    "ownership",
    "controls",
    "website",
    "cors",
    "logging",
    "metric",
    "inventory",
    "group",
    "schedule",
    "selection",
    "plan",
    "alias",
];
/// What identifies one of an unknown type.
const USUAL: &[&str] = &["name", "id"];

/// What the instance holds; nothing where it is not known to hold data.
pub fn of(instance: &Instance) -> Option<DataBearing> {
    let (what, attributes) = known(&instance.kind).or_else(|| guessed(&instance.kind))?;
    let object = instance.objects().next();
    let identity = object.map(|object| identity(object, attributes));
    Some(DataBearing {
        what,
        identity: identity.unwrap_or_default(),
    })
}

/// What a resource of this type holds; nothing where it is not known to hold data.
pub fn held_by(kind: &str) -> Option<&'static str> {
    known(kind).or_else(|| guessed(kind)).map(|(what, _)| what)
}

/// The attributes by which a person knows one of this type outside of Terraform, where it holds data.
pub fn identifying(kind: &str) -> &'static [&'static str] {
    known(kind).map_or(&[], |(_, attributes)| attributes)
}

fn known(kind: &str) -> Option<(&'static str, &'static [&'static str])> {
    let found = KNOWN.iter().find(|(known, ..)| *known == kind);
    found.map(|(_, what, attributes)| (*what, *attributes))
}

fn guessed(kind: &str) -> Option<(&'static str, &'static [&'static str])> {
    let words: Vec<&str> = kind.split(['_', '-']).skip(1).collect();
    if words.iter().any(|word| SETTINGS.contains(word)) {
        return None;
    }
    let mut found = WORDS.iter().filter(|(word, _)| words.contains(word));
    found.next().map(|(_, what)| (*what, USUAL))
}

fn identity(object: &Object, attributes: &[&str]) -> Vec<(String, String)> {
    let shown = |path: &&str| {
        let name = path.rsplit('.').next().unwrap_or(path);
        Some((name.to_owned(), object.text(path)?))
    };
    attributes.iter().filter_map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::super::inventory::Inventory;
    use super::*;

    fn held(kind: &str, attributes: &str) -> Option<DataBearing> {
        let state = format!(
            r#"{{"version": 4, "resources": [{{"mode": "managed", "type": "{kind}", "name": "n", "instances": [
                {{"attributes": {attributes}, "sensitive_attributes": [[{{"type": "get_attr", "value": "arn"}}]]}}]}}]}}"#
        );
        let inventory = Inventory::read(state.as_bytes()).unwrap();
        of(&inventory.instances()[0])
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_known_type_is_told_with_what_identifies_it_and_nothing_sensitive() {
        let bucket = held(
            "aws_s3_bucket",
            r#"{"bucket": "invoices-prd", "arn": "arn:aws:s3:::x", "id": "y"}"#,
        )
        .unwrap();
        assert_eq!(bucket.what, "bucket");
        assert_eq!(bucket.identity, [pair("bucket", "invoices-prd")]);
        let volume = held(
            "kubernetes_persistent_volume",
            r#"{"metadata": [{"name": "shop-data"}]}"#,
        );
        assert_eq!(volume.unwrap().identity, [pair("name", "shop-data")]);
    }

    #[test]
    fn an_unknown_type_is_taken_by_the_words_of_its_name() {
        let dataset = held("homelab_zfs_dataset", r#"{"name": "tank/shop"}"#).unwrap();
        assert_eq!(
            (dataset.what, dataset.identity),
            ("dataset", vec![pair("name", "tank/shop")])
        );
        for (kind, what) in [
            ("acme_rbd_image", "image"),
            ("acme_db", "database"),
            ("acme_block_volume_v2", ""),
        ] {
            assert_eq!(
                held(kind, "{}").map_or("", |held| held.what),
                what,
                "{kind}"
            );
        }
    }

    #[test]
    fn what_is_only_set_on_such_a_thing_holds_nothing() {
        for kind in [
            "aws_s3_bucket_policy",
            "aws_s3_bucket_public_access_block",
            "github_repository_webhook",
            "aws_volume_attachment",
            "terraform_data",
            "bucket",
        ] {
            assert_eq!(held(kind, "{}"), None, "{kind}");
        }
    }
}
