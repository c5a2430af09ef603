use super::*;

fn open(files: &[(&str, &str)], flavour: Flavour) -> Result<Root, RootError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    Root::open(
        folder.path(),
        "app/terraform",
        "argocd/R/prd/terraform.tfstate",
        flavour,
    )
}

fn refused(name: &str, text: &str) -> String {
    open(&[(name, text)], Flavour::Terraform)
        .unwrap_err()
        .to_string()
}

#[test]
fn another_backend_is_refused_with_file_and_line() {
    assert_eq!(
        refused(
            "main.tf",
            "# a\nterraform {\n  required_version = \">= 1\"\n  backend \"s3\" {\n  }\n}\n"
        ),
        "app/terraform/main.tf:4 declares backend \"s3\", while its state is kept at argocd/R/prd/terraform.tfstate: \
         another place would plan everything anew; remove that block"
    );
    assert!(
        refused("main.tf", "\u{feff}terraform {\ncloud {}\n}")
            .contains("main.tf:2 declares a cloud block")
    );
    assert!(
        refused("zz_override.tf", "terraform {\n  backend \"local\" {}\n}")
            .contains("zz_override.tf:2")
    );
    assert!(
        refused(
            "x.tf.json",
            "{\"//\": \"x\",\n\"terraform\": [{\"backend\": {\"gcs\": {}}}]}"
        )
        .contains("x.tf.json:2 declares backend \"gcs\"")
    );
    assert!(
        refused("x.tf.json", "{\"terraform\": {\"cloud\": {}}}")
            .contains("x.tf.json:1 declares a cloud block")
    );
}

#[test]
fn a_backend_in_a_comment_or_in_a_string_is_none() {
    let text = "# terraform { backend \"s3\" {} }\nlocals {\n  x = \"terraform { backend\"\n  y = <<E\nterraform {\n  backend \"s3\" {}\n}\nE\n}\n";
    assert!(open(&[("main.tf", text)], Flavour::Terraform).is_ok());
}

#[test]
fn a_terragrunt_root_and_an_empty_one_are_refused() {
    let error = open(
        &[("main.tf", ""), ("terragrunt.hcl", "")],
        Flavour::Terraform,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("app/terraform/terragrunt.hcl makes this a Terragrunt root")
    );
    assert!(matches!(
        open(&[("README.md", "")], Flavour::Terraform),
        Err(RootError::Empty { .. })
    ));
}

#[test]
fn brackets_without_end_are_refused_and_do_not_end_the_process() {
    let deep = "[".repeat(100_000);
    assert!(matches!(
        open(&[("main.tf", &deep)], Flavour::Terraform),
        Err(RootError::TooDeep { .. })
    ));
    let nested = format!(
        "variable \"x\" {{\n  type = {}string{}\n}}\n",
        "object({a=".repeat(40),
        "})".repeat(40)
    );
    assert!(open(&[("main.tf", &nested)], Flavour::Terraform).is_ok());
}

#[test]
fn opentofu_reads_its_own_file_instead_of_terraforms() {
    let files = [
        ("main.tf", "terraform {\n backend \"s3\" {}\n}"),
        ("main.tofu", ""),
    ];
    assert!(open(&files, Flavour::OpenTofu).is_ok());
    assert!(open(&files, Flavour::Terraform).is_err());
    let other = [
        ("main.tf", ""),
        ("main.tofu", "terraform {\n backend \"s3\" {}\n}"),
    ];
    assert!(open(&other, Flavour::Terraform).is_ok());
    assert!(open(&other, Flavour::OpenTofu).is_err());
}

#[test]
fn our_override_sorts_after_every_other_one() {
    for other in [
        "override.tf",
        "zz_override.tf",
        "~zz_override.tf",
        "~~_override.tf",
        "ü_override.tf",
        "\u{10ffff}\u{10ffff}_override.tf",
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(other), "").unwrap();
        let root = Root::open(folder.path(), "terraform", "k", Flavour::Terraform).unwrap();
        root.write_override().unwrap();
        let last = file_names(folder.path())
            .unwrap()
            .into_iter()
            .next_back()
            .unwrap();
        assert!(last.contains("stagewright_override"), "{other}: {last}");
    }
}

#[test]
fn a_committed_working_folder_of_terraforms_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.tf"), "").unwrap();
    let root = Root::open(folder.path(), "terraform", "k", Flavour::Terraform).unwrap();
    assert!(!root.remove_data_folder().unwrap());
    let data = folder.path().join(".terraform");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("environment"), "other").unwrap();
    assert!(root.remove_data_folder().unwrap());
    assert!(!data.exists());
    std::os::unix::fs::symlink(folder.path(), &data).unwrap();
    assert!(root.remove_data_folder().unwrap());
    assert!(folder.path().join("main.tf").exists());
}

#[test]
fn local_modules_are_found_wherever_they_lie_in_the_clone() {
    let text = br#"
        module "a" { source = "./modules/a" }
        module "b" { source = "../../shared/b" }
        module "c" { source = "../../../outside" }
        module "d" { source = "example/d/aws" }
    "#;
    let files = [("main.tf".to_owned(), text.to_vec())];
    let found: Vec<String> = module_sources(&files, "app/terraform")
        .into_iter()
        .collect();
    assert_eq!(found, ["app/terraform/modules/a", "shared/b"]);
}
