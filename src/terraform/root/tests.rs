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
fn a_file_of_somebody_elses_under_the_name_of_our_override_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("~stagewright_override.tf");
    let precious = folder.path().join("precious");
    std::fs::write(folder.path().join("main.tf"), "").unwrap();
    std::fs::write(&precious, "kept").unwrap();
    let taken = || {
        let root = Root::open(folder.path(), "terraform", "k", Flavour::Terraform).unwrap();
        matches!(root.override_file(), Err(RootError::NameTaken { .. }))
    };
    std::fs::write(&file, "# mine\n").unwrap();
    assert!(taken());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&precious, &file).unwrap();
    assert!(taken());
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    std::fs::remove_file(&file).unwrap();

    let root = Root::open(folder.path(), "terraform", "k", Flavour::Terraform).unwrap();
    root.write_override().unwrap();
    drop(root.override_file().unwrap());
    assert!(!file.exists());
}

#[test]
fn a_committed_working_folder_of_terraforms_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.tf"), "").unwrap();
    let root = Root::open(folder.path(), "terraform", "k", Flavour::Terraform).unwrap();
    assert!(!root.remove_leftover(".terraform").unwrap());
    let data = folder.path().join(".terraform");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("environment"), "other").unwrap();
    assert!(root.remove_leftover(".terraform").unwrap());
    assert!(!data.exists());
    std::os::unix::fs::symlink(folder.path(), &data).unwrap();
    assert!(root.remove_leftover(".terraform").unwrap());
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

/// Each was tried with Terraform 1.11.4, which takes the backend of every one.
#[test]
fn a_backend_in_a_file_that_our_parser_gives_up_is_refused() {
    const BLOCK: &str = "terraform {\n  backend \"s3\" {}\n}\n# */\n";
    // For our parser that heredoc ends before it does for Terraform, and a comment begins that hides the block.
    let hidden = b"locals {\n  x = <<E\na\nE # is\n}\n/*\nE\n}\n";
    let files: [(&[u8], &str, usize); 6] = [
        (b"# caf\xe9\n", "line 1 is not UTF-8", 3),
        (
            b"locals {\n  x = <<E\na\nE is\nE\n}\n",
            "line 4 is not understood",
            8,
        ),
        (b"locals {\n  x = 1e400\n}\n", "line 2 is not understood", 5),
        (b"# a\rb\n", "line 1 is not understood", 3),
        (b"# \xff\xfe cloud\n", "line 1 is not UTF-8", 3),
        (
            hidden,
            "a line of a heredoc begins with the word that ends it",
            10,
        ),
    ];
    for (before, why, line) in files {
        let folder = tempfile::tempdir().unwrap();
        let bytes = [before, BLOCK.as_bytes()].concat();
        std::fs::write(folder.path().join("main.tf"), &bytes).unwrap();
        let error = Root::open(folder.path(), "terraform", "k", Flavour::Terraform).unwrap_err();
        let told = error.to_string();
        assert!(matches!(error, RootError::Unread { .. }), "{told}");
        assert!(told.contains(why), "{told}");
        let place = format!("terraform/main.tf:{line} mentions backend, ");
        assert!(told.starts_with(&place), "{told}");
    }
}

#[test]
fn a_mention_in_a_file_that_does_not_parse_is_refused_where_a_block_could_begin() {
    for text in [
        "backend \"s3\" {}",
        "backend s3 {",
        "backend\"s3\"{",
        "backend /* a\n */ \"s3\" {",
        "cloud {",
        "cloud{",
        "cloud/**/{",
        "# the backend is elsewhere",
    ] {
        let told = refused("main.tf", &format!("x = = 1\n{text}\n"));
        assert!(
            told.starts_with("app/terraform/main.tf:2 mentions "),
            "{text}: {told}"
        );
        assert!(told.contains("line 1 is not understood"), "{told}");
    }
    for text in [
        "",
        "backend = 1",
        "my_backend \"x\" {",
        "x-backend {",
        "backends {",
        "backend_x \"y\" {",
        "Backend \"s3\" {",
        "# in the cloud.",
    ] {
        let text = format!("x = = 1\n{text}\n");
        assert!(
            open(&[("main.tf", &text)], Flavour::Terraform).is_ok(),
            "{text}"
        );
    }
}

#[test]
fn a_backend_in_any_form_of_json_is_refused() {
    let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let deep = format!("\"locals\": {{\"x\": {}}}", deep(200));
    let block = "\"terraform\": {\n\"backend\": {\"s3\": {}}}";
    for text in [
        format!("{{{block}, \"terraform\": {{}}}}"),
        format!("{{\"terraform\": {{}}, {block}}}"),
        format!("[{{{block}}}]"),
        format!("[[{{{block}}}]]"),
        "{\"terraform\": [[{\n\"backend\": {\"s3\": {}}}]]}".to_owned(),
        "{\"terraform\": [[], [{}, {\n\"backend\": [[{\"s3\": {}}]]}]]}".to_owned(),
        format!("{{\"locals\": {{\"x\": \"\\ud800\"}}, {block}}}"),
        format!("{{\"locals\": {{\"x\": 1e400}}, {block}}}"),
        format!("{{{deep}, {block}}}"),
        format!("{{\"locals\": {{\"backend\": \"\\\"backend\\\":\"}}, {block}}}"),
        "{\"\\u0074erraform\": {\n\"back\\u0065nd\": {\"s3\": {}}}}".to_owned(),
    ] {
        let told = refused("x.tf.json", &text);
        assert!(
            told.contains("x.tf.json:2 declares backend \"s3\""),
            "{text}: {told}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = b"{\"//\": \"caf\xe9\",\n\"terraform\": {\"cloud\": {}}}";
    std::fs::write(folder.path().join("x.tf.json"), bytes).unwrap();
    let error = Root::open(folder.path(), "terraform", "k", Flavour::Terraform).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("x.tf.json:2 declares a cloud block")
    );
}

#[test]
fn another_mention_in_json_is_no_backend() {
    for text in [
        "{\"terraform\": {\"//\": \"backend\"}, \"locals\": {\"backend\": {\"s3\": {}}}}",
        "{\"resource\": {\"terraform\": {\"backend\": {\"cloud\": {}}}}}",
        "{\"terraform\": {\"required_providers\": {\"cloud\": {}}}}",
        "{\"terraform\": {\"x\": \"{\\\"backend\\\": {}}\"}}",
    ] {
        assert!(
            open(&[("x.tf.json", text)], Flavour::Terraform).is_ok(),
            "{text}"
        );
    }
}

#[test]
fn local_modules_are_found_in_json_and_in_a_file_that_is_not_utf_8() {
    let files: [(&str, &[u8]); 4] = [
        ("a.tf", b"# caf\xe9\nmodule \"a\" { source = \"./a\" }"),
        ("b.tf.json", b"{\"module\": {\"b\": {\"x\": 1, \"source\": \"./b\"}, \"c\": [{\"source\": \"../c\"}]}}"),
        ("c.tofu.json", b"[{\"module\": [[{\"d\": {\"source\": \"./d\"}}]], \"module\": {\"e\": {\"source\": \"./e\"}}}]"),
        ("d.json", b"{\"module\": {\"f\": {\"source\": \"./f\"}}}"),
    ];
    let files = files.map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    let found: Vec<String> = module_sources(&files, "app/terraform")
        .into_iter()
        .collect();
    assert_eq!(
        found,
        [
            "app/c",
            "app/terraform/a",
            "app/terraform/b",
            "app/terraform/d",
            "app/terraform/e"
        ]
    );
}
