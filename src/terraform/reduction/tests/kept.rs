//! What stays, what goes, and how it is told.

use super::*;

const ROOT: &str = r#"# The app's root.
terraform {
  required_providers { # for prd
    aws = {
      source = "hashicorp/aws"
    }
  }
  backend "http" {}
}

/* regions */
provider "aws" {
  region = local.region
}

variable "region" {
  type = string
}

locals {
  # Where it runs.
  region = lower(var.region) # as AWS has it
  name   = "app-${aws_s3_bucket.data.id}"
  tags = {
    app = local.name
  }
}

resource "aws_s3_bucket" "data" {
  bucket = "app"
}

module "network" {
  source = "./network"
}

data "aws_caller_identity" "me" {}

output "bucket" {
  value = aws_s3_bucket.data.id
}

removed {
  from = aws_s3_bucket.old

  lifecycle {
    destroy = false
  }
}

moved {
  from = aws_s3_bucket.a
  to   = aws_s3_bucket.data
}

import {
  to = aws_s3_bucket.data
  id = "app"
}

check "up" {
  assert {
    condition     = true
    error_message = ""
  }
}
"#;

#[test]
fn a_root_keeps_what_declares_no_object_and_the_values_that_this_needs() {
    assert_eq!(
        left(ROOT),
        r#"# The app's root.
terraform {
  required_providers { # for prd
    aws = {
      source = "hashicorp/aws"
    }
  }
  backend "http" {}
}
/* regions */
provider "aws" {
  region = local.region
}
variable "region" {
  type = string
}
locals {
  # Where it runs.
  region = lower(var.region) # as AWS has it
}
removed {
  from = aws_s3_bucket.old
  lifecycle {
    destroy = false
  }
}"#
    );
    assert_eq!(
        line(ROOT),
        "main.tf: keeps 5 declaration(s), drops local.name, local.tags, aws_s3_bucket.data, module.network, \
         data.aws_caller_identity.me, output.bucket, moved from aws_s3_bucket.a, import to aws_s3_bucket.data, check.up"
    );
}

#[test]
fn kept_blocks_stand_on_the_lines_where_they_stood() {
    let text = "resource \"a\" \"b\" {\n  x = <<E\n  }\n  E\n}\nvariable \"v\" {} # v\n";
    assert_eq!(whole(text), "\n\n\n\n\nvariable \"v\" {} # v\n");
}

#[test]
fn the_ends_of_lines_the_byte_order_mark_and_a_missing_last_line_end_stay() {
    let text = "\u{feff}provider \"x\" {\r\n  a = 1\r\n}\r\nresource \"a\" \"b\" {\r\n}\r\nvariable \"v\" {\r\n}";
    assert_eq!(
        whole(text),
        "\u{feff}provider \"x\" {\r\n  a = 1\r\n}\r\n\r\n\r\nvariable \"v\" {\r\n}"
    );
    assert_eq!(line(text), "main.tf: keeps 2 declaration(s), drops a.b");
}

#[test]
fn the_line_names_ten_and_counts_the_others() {
    assert_eq!(line(""), "main.tf: keeps 0 declaration(s), drops nothing");
    assert_eq!(
        line("locals {\n}\n"),
        "main.tf: keeps 0 declaration(s), drops locals"
    );
    let outputs = |count: u32| -> String {
        let all = (1..=count).map(|n| format!("output \"o{n}\" {{\n  value = 1\n}}\n"));
        all.collect()
    };
    let ten = "output.o1, output.o2, output.o3, output.o4, output.o5, output.o6, output.o7, output.o8, output.o9, output.o10";
    assert_eq!(
        line(&outputs(10)),
        format!("main.tf: keeps 0 declaration(s), drops {ten}")
    );
    assert_eq!(
        line(&outputs(12)),
        format!("main.tf: keeps 0 declaration(s), drops {ten} and 2 more")
    );
}

#[test]
fn what_is_needed_is_found_through_values_data_and_ephemeral_resources() {
    let text = r#"
provider "a" {
  token = ephemeral.vault_secret.token.data
  host  = local.host
}
ephemeral "vault_secret" "token" {
  path = data.vault_mount.main.path
}
data "vault_mount" "main" {
  path = local.paths["main"]
}
ephemeral "vault_secret" "other" {}
locals { paths = { main = var.path } }
locals {
  host   = "${local.prefix}.example"
  prefix = var.prefix
  unused = local.host
}
"#;
    let kept = reduce(&[("main.tf", text)]);
    assert_eq!(
        kept.files()[0].to_string(),
        "main.tf: keeps 6 declaration(s), drops ephemeral.vault_secret.other, local.unused"
    );
    assert!(left(text).contains("locals { paths = { main = var.path } }"));
}

#[test]
fn a_data_source_with_nothing_managed_is_kept_and_its_provider_is_no_reference() {
    let text = "provider \"kubernetes\" {\n  host = data.aws_eks_cluster.main.endpoint\n}\ndata \"aws_eks_cluster\" \"main\" {\n  provider = aws.west\n  name = var.cluster\n}\nresource \"aws\" \"west\" {}\n";
    assert_eq!(
        line(text),
        "main.tf: keeps 2 declaration(s), drops aws.west"
    );
}

#[test]
fn what_only_looks_like_a_reference_is_none() {
    let text = r#"
resource "a" "b" {}
module "m" {
  source = "./m"
}
provider "p" {
  one   = "$${a.b.id} a.b.id %%{ if a.b }"
  two   = "\"${"a.b"}"
  three = { a = 1, b : 2 }
  four  = var.a.b
  five  = var.list[*].a.b
  six   = provider::a::b("x")
  seven = path.module == terraform.workspace ? each.value : self.a.b # a.b
  eight = file("${path.module}/a.b")
  nine  = templatefile("${path.module}/a.b", { a = var.b })
  /* a.b module.m */
}
"#;
    assert_eq!(
        line(text),
        "main.tf: keeps 1 declaration(s), drops a.b, module.m"
    );
}

#[test]
fn an_override_goes_with_what_it_overrides_and_its_references_count() {
    let files = [
        (
            "main.tf",
            "provider \"p\" {\n  host = local.host\n}\nlocals {\n  host = \"a\"\n}\ndata \"d\" \"e\" {}\nresource \"a\" \"b\" {}\n",
        ),
        (
            "override.tf",
            "locals {\n  host = data.d.e.host\n}\nresource \"a\" \"b\" {\n  x = 1\n}\n",
        ),
        ("zz_override.tf", "data \"d\" \"e\" {\n  x = 2\n}\n"),
    ];
    let lines: Vec<String> = reduce(&files)
        .files()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines,
        [
            "main.tf: keeps 3 declaration(s), drops a.b",
            "override.tf: keeps 1 declaration(s), drops a.b",
            "zz_override.tf: keeps 1 declaration(s), drops nothing",
        ]
    );
}

#[test]
fn a_backend_stays_as_it_stands_in_any_file() {
    let files = [
        ("main.tf", "terraform {\n  backend \"x\" {}\n}\n"),
        ("override.tf", "terraform {\n  cloud {}\n}\n"),
        (
            "a_override.tf",
            "terraform {\n  backend \"http\" {}\n}\nresource \"a\" \"b\" {}\n",
        ),
    ];
    let reduction = reduce(&files);
    let texts: Vec<&str> = reduction.files().iter().map(ReducedFile::text).collect();
    assert_eq!(
        texts,
        [
            "terraform {\n  backend \"http\" {}\n}\n\n",
            "terraform {\n  backend \"x\" {}\n}\n",
            "terraform {\n  cloud {}\n}\n"
        ]
    );
}

#[test]
fn opentofu_reduces_its_own_file_instead_of_terraforms_and_keeps_the_encryption() {
    let tofu = "terraform {\n  encryption {\n    key_provider \"pbkdf2\" \"k\" {\n      passphrase = var.passphrase\n    }\n  }\n}\nprovider \"a\" {\n  alias    = \"by\"\n  for_each = local.regions\n}\nlocals {\n  regions = toset(var.regions)\n}\n";
    let files = [("main.tf", "provider \"b\" {}\n"), ("main.tofu", tofu)];
    let names = |flavour| -> Vec<String> {
        let reduction = reduce_as(&files, flavour, None).unwrap();
        reduction.files().iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        names(Flavour::OpenTofu),
        ["main.tofu: keeps 3 declaration(s), drops nothing"]
    );
    assert_eq!(
        names(Flavour::Terraform),
        ["main.tf: keeps 1 declaration(s), drops nothing"]
    );
}

#[test]
fn the_variables_are_listed_with_whether_they_need_a_value() {
    let files = [
        (
            "a.tf",
            "variable \"stage\" {}\n\nvariable \"size\" {\n  default = null\n}\nvariable \"zone\" {}\n",
        ),
        (
            "b_override.tf",
            "variable \"zone\" {\n  default = \"a\"\n}\n",
        ),
    ];
    let reduction = reduce(&files);
    let listed: Vec<(&str, &str, bool)> = reduction
        .variables()
        .iter()
        .map(|v| (v.name.as_str(), v.place.as_str(), v.has_default))
        .collect();
    assert_eq!(
        listed,
        [
            ("size", "app/terraform/a.tf:3", true),
            ("stage", "app/terraform/a.tf:1", false),
            ("zone", "app/terraform/a.tf:6", true),
        ]
    );
}

#[test]
fn what_a_destroy_leaves_undone_is_noted_with_its_place() {
    let text = r#"
resource "a" "provisioned" {
  provisioner "local-exec" {
    command = "date"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "date"
  }
  provisioner "remote-exec" {
    when   = "destroy"
    inline = []
  }
}
resource "a" "guarded" {
  lifecycle {
    prevent_destroy = true
  }
}
resource "a" "by_variable" {
  lifecycle {
    prevent_destroy = var.guarded
    destroy         = false
  }
}
resource "a" "plain" {
  skip_destroy = false
  lifecycle {
    prevent_destroy = false
    destroy         = true
  }
}
resource "aws_x" "skipped" {
  skip_destroy = true
}
removed {
  from = a.forgotten
  lifecycle {
    destroy = false
  }
}
removed {
  from = a.destroyed
  lifecycle {
    destroy = true
  }
}
removed {
  from = module.also_destroyed
}
"#;
    let reduction = reduce(&[("main.tf", text)]);
    let notes = reduction.notes();
    let told = |notes: &[Note]| -> Vec<String> { notes.iter().map(ToString::to_string).collect() };
    assert_eq!(
        told(&notes.destroy_provisioners),
        [
            "a.provisioned (app/terraform/main.tf:6)",
            "a.provisioned (app/terraform/main.tf:10)"
        ]
    );
    assert_eq!(
        told(&notes.prevent_destroy),
        [
            "a.guarded (app/terraform/main.tf:17)",
            "a.by_variable (app/terraform/main.tf:22)"
        ]
    );
    assert_eq!(
        told(&notes.not_destroyed),
        ["a.by_variable (app/terraform/main.tf:23)"]
    );
    assert_eq!(
        told(&notes.skip_destroy),
        ["aws_x.skipped (app/terraform/main.tf:34)"]
    );
    assert_eq!(
        told(&notes.forgotten),
        ["a.forgotten (app/terraform/main.tf:36)"]
    );
    // OpenTofu forgets where the block does not say.
    let reduction = reduce_as(&[("main.tf", text)], Flavour::OpenTofu, None).unwrap();
    assert_eq!(
        told(&reduction.notes().forgotten),
        [
            "a.forgotten (app/terraform/main.tf:36)",
            "module.also_destroyed (app/terraform/main.tf:48)"
        ]
    );
}

#[test]
fn a_local_module_is_looked_through_as_well_and_what_cannot_be_read_of_it_is_named() {
    let files = [
        (
            "main.tf",
            "resource \"a\" \"b\" {\n  provisioner \"x\" {\n    when = destroy\n  }\n}\nremoved {\n  from = a.c\n  lifecycle {\n    destroy = false\n  }\n}\n",
        ),
        ("more.tf.json", "{}"),
        ("broken.tf", "locals {\n  a = \"\n}\n"),
        ("README.md", "# {"),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    let module = Notes::of_module(&files.into(), "modules/m", Flavour::Terraform);
    let mut notes = Notes::default();
    notes.extend(module);
    assert_eq!(
        notes.destroy_provisioners[0].to_string(),
        "a.b (modules/m/main.tf:2)"
    );
    assert_eq!(notes.forgotten, []);
    assert_eq!(
        notes.unread,
        ["modules/m/broken.tf:2", "modules/m/more.tf.json:1"]
    );
}

#[test]
fn the_files_of_a_folder_are_replaced_and_all_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("main.tf"), "resource \"a\" \"b\" {}\n").unwrap();
    std::fs::write(path("variables.tf"), "variable \"v\" {}\n").unwrap();
    std::fs::write(path("notes.txt"), "kept").unwrap();
    std::fs::write(path(".terraform.lock.hcl"), "").unwrap();
    let root = Root::open(folder.path(), "t", "k", Flavour::Terraform).unwrap();
    let reduction = root.reduce("t").unwrap();
    reduction.write(folder.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(read("main.tf"), "\n");
    assert_eq!(read("variables.tf"), "variable \"v\" {}\n");
    assert_eq!(read("notes.txt"), "kept");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);

    let gone = folder.path().join("gone");
    assert!(matches!(
        reduction.write(&gone),
        Err(ReductionError::Write { .. })
    ));
}

#[test]
fn a_dropped_call_of_a_module_and_what_a_removed_block_runs_are_noted() {
    let reduction = reduce(&[(
        "main.tf",
        "module \"here\" {\n  source = \"./x\"\n}\nmodule \"there\" {\n  source = \"git::https://h/o/x\"\n}\n\
         module \"made\" {\n  source = \"./${var.x}\"\n}\n\
         removed {\n  from = a.b\n  lifecycle {\n    destroy = true\n  }\n  provisioner \"local-exec\" {\n    when = destroy\n  }\n}\n",
    )]);
    let notes = reduction.notes();
    let calls: Vec<String> = notes
        .calls
        .iter()
        .map(|(call, from)| format!("{call} {from:?}"))
        .collect();
    assert_eq!(
        calls,
        [
            "module.here (app/terraform/main.tf:1) Some(\"./x\")",
            "module.there (app/terraform/main.tf:4) Some(\"git::https://h/o/x\")",
            "module.made (app/terraform/main.tf:7) None",
        ]
    );
    let run: Vec<String> = notes.run.iter().map(ToString::to_string).collect();
    assert_eq!(run, ["a.b (app/terraform/main.tf:15)"]);
}
