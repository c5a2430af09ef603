//! What is kept and needs what is not, and providers that only the state knows.

use super::*;

#[test]
fn a_provider_that_needs_a_resource_or_a_module_is_refused_with_every_place() {
    let text = "provider \"kubernetes\" {\n  host  = aws_eks_cluster.main.endpoint\n  token = module.auth[\"x\"].token\n}\nresource \"aws_eks_cluster\" \"main\" {}\nmodule \"auth\" {\n  source = \"./auth\"\n}\n";
    assert_eq!(
        refused(&[("main.tf", text)]),
        "a destroy keeps neither resources nor modules of the root, so a value would be missing: \
         provider \"kubernetes\" refers to aws_eks_cluster.main at app/terraform/main.tf:2, \
         provider \"kubernetes\" refers to module.auth at app/terraform/main.tf:3; \
         take it from a variable or a data source instead"
    );
}

#[test]
fn what_leads_to_a_resource_through_others_is_refused_where_it_refers_to_it() {
    let files = [
        (
            "locals.tf",
            "locals {\n  unused = a.b.id\n  host = \"https://${\n    a.b.host\n  }\"\n}\n",
        ),
        (
            "main.tf",
            "provider \"p\" {\n  host = data.d.e.host\n}\nresource \"a\" \"b\" {}\n",
        ),
        ("z.tf", "data \"d\" \"e\" {\n  x = local.host\n}\n"),
    ];
    let told = refused(&files);
    assert!(
        told.contains(": local.host refers to a.b at app/terraform/locals.tf:4, and provider \"p\" needs local.host; "),
        "{told}"
    );
}

#[test]
fn every_way_to_refer_to_a_resource_counts() {
    for expression in [
        "a.b",
        "a.b.id",
        "a.b[0].id",
        "a.b[*].id",
        "a . b",
        "a/* x */.b",
        "(\n  a.\n  b.id)",
        "resource.a.b.id",
        "\"x${a.b.id}\"",
        "\"%{ if a.b.on }x%{ endif }\"",
        "<<E\n\"${a.b.id}\nE",
        "<<E\n${<<F\n${a.b.id}\nF\n}\nE",
        "[for x in a.b : x.id]",
        "{ for k, v in { x = 1 } : k => a.b.id }",
        "{ (a.b.id) = 1 }",
        "{ a = a.b.id }",
        "f(a.b.id...)",
        "true ? a.b.id : null",
        "-a.b.count",
        "!a.b.on",
        "templatestring(local.t, { host = a.b.host })",
        "templatefile(\"x\", { host = a.b.host })",
        "provider::x::y(a.b.id)",
        "[1, a.b.id][0]",
        "module.m",
        "module.m.id",
        "module.m[0].id",
    ] {
        let text = format!(
            "provider \"p\" {{\n  x = {expression}\n}}\nlocals {{\n  t = \"$${{host}}\"\n}}\nresource \"a\" \"b\" {{}}\nmodule \"m\" {{\n  source = \"./m\"\n}}\n"
        );
        let error = reduce_as(&[("main.tf", &text)], Flavour::Terraform, None);
        assert!(
            matches!(error, Err(ReductionError::Dangling { .. })),
            "{expression}"
        );
    }
}

#[test]
fn every_kept_block_may_refer_to_what_is_dropped() {
    for (block, owner) in [
        (
            "variable \"v\" {\n  validation {\n    condition = var.v != a.b.id\n    error_message = \"x\"\n  }\n}",
            "variable \"v\"",
        ),
        (
            "provider \"p\" {\n  for_each = a.b.regions\n}",
            "provider \"p\"",
        ),
        (
            "provider \"p\" {\n  dynamic \"x\" {\n    for_each = a.b.list\n    content {}\n  }\n}",
            "provider \"p\"",
        ),
        (
            "terraform {\n  encryption {\n    key_provider \"x\" \"y\" {\n      z = a.b.id\n    }\n  }\n}",
            "terraform",
        ),
        (
            "provider \"p\" {\n  x = data.d.e.id\n}\ndata \"d\" \"e\" {\n  depends_on = [a.b]\n}",
            "data.d.e",
        ),
        (
            "provider \"p\" {\n  x = data.d.e.id\n}\ndata \"d\" \"e\" {\n  depends_on = [\"a.b\"]\n}",
            "data.d.e",
        ),
        (
            "provider \"p\" {\n  x = data.d.e.id\n}\ndata \"d\" \"e\" {\n  lifecycle {\n    postcondition {\n      condition = a.b.ok\n    }\n  }\n}",
            "data.d.e",
        ),
        (
            "provider \"p\" {\n  x = ephemeral.d.e.id\n}\nephemeral \"d\" \"e\" {\n  count = a.b.number\n}",
            "ephemeral.d.e",
        ),
        (
            "provider \"p\" {\n  x = local.x\n}\nlocals { x = a.b.id }",
            "local.x",
        ),
    ] {
        let text = format!("{block}\nresource \"a\" \"b\" {{}}\n");
        let told = refused(&[("main.tf", &text)]);
        assert!(
            told.contains(&format!(": {owner} refers to a.b at ")),
            "{block}: {told}"
        );
    }
}

#[test]
fn a_cycle_of_values_ends() {
    let text = "provider \"p\" {\n  x = local.a\n}\nlocals {\n  a = local.b\n  b = local.a\n}\n";
    assert_eq!(line(text), "main.tf: keeps 3 declaration(s), drops nothing");
}

const PROVIDERS: &str = r#"
terraform {
  required_providers {
    aws  = { source = "hashicorp/aws", version = "~> 5.0" }
    mine = {
      "source" : "example/Mine"
    }
    other = { source = "registry.example/team/other" }
    old   = ">= 1.0"
  }
}
provider "aws" {
  alias = "west"
}
provider "mine" {
  alias = "by_zone"
}
provider "helm" {
  version = "2.0"
}
resource "random_id" "a" {}
resource "x_y" "b" {
  provider = null.c
}
data "terraform_remote_state" "d" {}
"#;

fn missing(flavour: Flavour, in_state: &[&str]) -> Vec<String> {
    let reduction = reduce_as(&[("main.tf", PROVIDERS)], flavour, None).unwrap();
    match reduction.check_providers(in_state) {
        Ok(()) => Vec::new(),
        Err(ReductionError::Providers { missing }) => {
            missing.iter().map(ToString::to_string).collect()
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_state_whose_providers_the_root_lacks_is_refused_and_all_are_named() {
    assert_eq!(
        missing(
            Flavour::Terraform,
            &[
                r#"provider["registry.terraform.io/hashicorp/aws"]"#,
                r#"provider["registry.terraform.io/hashicorp/aws"].west"#,
                r#"provider["registry.terraform.io/hashicorp/never_declared"]"#,
                r#"provider["registry.terraform.io/example/mine"].by_zone"#,
                r#"provider["terraform.io/builtin/terraform"]"#,
            ]
        ),
        [] as [&str; 0]
    );
    let east = r#"provider["registry.terraform.io/hashicorp/aws"].east"#;
    let inside = r#"module.net.module.vpc.provider["registry.terraform.io/hashicorp/aws"]"#;
    assert_eq!(
        missing(
            Flavour::Terraform,
            &[
                inside,
                east,
                east,
                "provider.aws",
                r#"provider["registry.terraform.io/-/aws"]"#,
                r#"provider["registry.terraform.io/hashicorp/mine"].by_zone"#
            ]
        ),
        [
            r#"module.net.module.vpc.provider["registry.terraform.io/hashicorp/aws"] (configured inside module.net.module.vpc, which is dropped)"#,
            r#"provider.aws (an address of before Terraform 0.13; terraform state replace-provider gives it a new one)"#,
            r#"provider["registry.terraform.io/-/aws"] (an address of before Terraform 0.13; terraform state replace-provider gives it a new one)"#,
            r#"provider["registry.terraform.io/hashicorp/aws"].east (the root configures no alias "east" of it)"#,
            r#"provider["registry.terraform.io/hashicorp/mine"].by_zone (the root configures no alias "by_zone" of it)"#,
        ]
    );
}

#[test]
fn opentofu_finds_a_providers_instances_and_those_of_terraforms_registry_in_its_own() {
    assert_eq!(
        missing(
            Flavour::OpenTofu,
            &[
                r#"provider["registry.opentofu.org/example/mine"].by_zone["a"]"#,
                r#"provider["registry.terraform.io/hashicorp/aws"].west"#,
                r#"provider["registry.opentofu.org/hashicorp/aws"].west"#,
            ]
        ),
        [] as [&str; 0]
    );
}

#[test]
fn a_provider_that_neither_the_lock_file_nor_a_constraint_pins_is_named() {
    let lock = "provider \"registry.terraform.io/hashicorp/random\" {\n  version = \"3.0.0\"\n}\n";
    let unpinned = |flavour, lock, state: &[&str]| {
        let reduction = reduce_as(&[("main.tf", PROVIDERS)], flavour, lock).unwrap();
        reduction.unpinned_providers(state)
    };
    assert_eq!(
        unpinned(Flavour::Terraform, Some(lock), &[]),
        [
            "registry.example/team/other",
            "registry.terraform.io/example/mine",
            "registry.terraform.io/hashicorp/null",
        ]
    );
    let in_module = r#"provider["registry.terraform.io/hashicorp/tls"]"#;
    assert_eq!(
        unpinned(Flavour::Terraform, None, &[in_module]),
        [
            "registry.example/team/other",
            "registry.terraform.io/example/mine",
            "registry.terraform.io/hashicorp/null",
            "registry.terraform.io/hashicorp/random",
            "registry.terraform.io/hashicorp/tls",
        ]
    );
    assert_eq!(
        unpinned(Flavour::OpenTofu, Some(lock), &[in_module]),
        [
            "registry.example/team/other",
            "registry.opentofu.org/example/mine",
            "registry.opentofu.org/hashicorp/null",
            "registry.opentofu.org/hashicorp/tls",
        ]
    );
}

#[test]
fn an_override_files_source_of_a_provider_counts_whatever_its_name() {
    let required = |source| {
        format!(
            "terraform {{\n  required_providers {{\n    p = {{ source = \"{source}\" }}\n  }}\n}}\n"
        )
    };
    let main = format!(
        "{}provider \"p\" {{\n  alias = \"a\"\n}}\n",
        required("one/p")
    );
    let files = [
        ("main.tf", main.as_str()),
        ("a_override.tf", &required("two/p")),
    ];
    let reduction = reduce(&files);
    let check = |source| {
        let address = format!("provider[\"registry.terraform.io/{source}/p\"].a");
        reduction.check_providers([address]).is_ok()
    };
    assert!(check("two"));
    assert!(!check("one"));
}
