//! Resources that the provider no longer finds, with a real provider (`local`), and the root's lock file.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/estate.rs"]
mod estate;
#[path = "support/tools.rs"]
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use estate::Estate;

/// The mirror of providers that `tests/tools` builds: the folder `providers` beside its program on PATH.
fn mirror() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mirror = std::env::split_paths(&path)
        .map(|folder| folder.join("providers"))
        .find(|mirror| {
            mirror
                .join("registry.terraform.io/hashicorp/local")
                .is_dir()
        });
    tools::found_or_left_out(
        "provider hashicorp/local",
        "STAGEWRIGHT_TOOLS_REQUIRED",
        mirror,
    )
}

/// An estate in which a stage of FieldnotesDeploy has files as its resources.
struct Files {
    estate: Estate,
    stage: &'static str,
}

impl Files {
    /// `None` where the provider is not there.
    fn of(stage: &'static str) -> Option<Files> {
        let mirror = mirror()?;
        let estate = Estate::unpack();
        let configuration = format!(
            "provider_installation {{\n  filesystem_mirror {{\n    path = \"{}\"\n  }}\n}}\n",
            mirror.display()
        );
        std::fs::write(estate.path().join("terraformrc"), configuration).unwrap();
        Some(Files { estate, stage })
    }

    /// The path of a resource's file.
    fn file(&self, name: &str) -> PathBuf {
        self.estate.path().join(name)
    }

    /// A root with these resources, each a file of its name.
    fn root(&self, names: &[&str]) -> String {
        let mut root = "terraform {\n  required_providers {\n    local = {\n      source = \"hashicorp/local\"\n    }\n  }\n}\n".to_owned();
        for name in names {
            let file = self.file(name);
            root.push_str(&format!(
                "resource \"local_file\" \"{name}\" {{\n  content  = \"{name}\"\n  filename = \"{}\"\n}}\n",
                file.display()
            ));
        }
        root
    }

    /// Applies a root with these resources for real, and commits the state that it leaves; gives its lock file.
    fn apply(&self, names: &[&str]) -> String {
        let work = self.estate.path().join("applied");
        std::fs::create_dir(&work).unwrap();
        std::fs::write(work.join("main.tf"), self.root(names)).unwrap();
        for arguments in [["init", "-input=false"], ["apply", "-auto-approve"]] {
            let mut terraform = self.program("terraform");
            let output = terraform
                .args(arguments)
                .current_dir(&work)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{arguments:?}: {said}");
        }
        self.estate.commit("TerraformState", |files| {
            let state = format!("argocd/FieldnotesDeploy/{}/terraform.tfstate", self.stage);
            std::fs::copy(work.join("terraform.tfstate"), files.join(state)).unwrap();
        });
        std::fs::read_to_string(work.join(".terraform.lock.hcl")).unwrap()
    }

    /// Commits a root with these resources, and a lock file where there is one.
    fn deploy(&self, names: &[&str], lock: Option<&str>) {
        self.estate.commit("FieldnotesDeploy", |files| {
            let folder = files.join("terraform");
            std::fs::remove_file(folder.join("outputs.tf")).unwrap();
            std::fs::write(folder.join("main.tf"), self.root(names)).unwrap();
            if let Some(lock) = lock {
                std::fs::write(folder.join(".terraform.lock.hcl"), lock).unwrap();
            }
        });
    }

    fn program(&self, program: &str) -> Command {
        let mut command = self.estate.program(program);
        command.env("TF_CLI_CONFIG_FILE", self.estate.path().join("terraformrc"));
        command
    }

    /// Plans; gives the exit code, presync's own lines of the log from the plan on, and the whole log.
    fn plan(&self) -> (Option<i32>, Vec<String>, String) {
        let output = self
            .program(env!("CARGO_BIN_EXE_stagewright-plan"))
            .args([
                "--sandbox=sandbox",
                "--repo",
                "FieldnotesDeploy",
                "--stage",
                "prd",
            ])
            .output()
            .unwrap();
        let log = String::from_utf8(output.stdout).unwrap();
        let lines = log
            .lines()
            .filter(|line| line.starts_with("presync: "))
            .skip_while(|line| !line.starts_with("presync: planning against "))
            .skip(1)
            .map(str::to_owned)
            .collect();
        (output.status.code(), lines, log)
    }
}

/// What a preview came to: its exit code, its log with its reading, and what it said on standard error.
struct Previewed {
    code: Option<i32>,
    shown: String,
    said: String,
}

impl Files {
    fn preview(&self, flags: &[&str]) -> Previewed {
        let output = self
            .program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"))
            .args(["preview", "--sandbox=sandbox", "--repo", "FieldnotesDeploy"])
            .args(["--stage", self.stage, "--namespace", "fieldnotes-demo"])
            .args(flags)
            .output()
            .unwrap();
        Previewed {
            code: output.status.code(),
            shown: String::from_utf8(output.stdout).unwrap(),
            said: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

#[test]
fn a_preview_in_which_everything_of_a_provider_is_gone_needs_its_flag() {
    let Some(files) = Files::of("demo") else {
        return;
    };
    let lock = files.apply(&["one", "two"]);
    files.deploy(&["one", "two"], Some(&lock));
    for name in ["one", "two"] {
        std::fs::remove_file(files.file(name)).unwrap();
    }
    let Previewed { code, shown, said } = files.preview(&[]);
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains(
            "of provider[\"registry.terraform.io/hashicorp/local\"] the provider finds nothing"
        ),
        "{said}"
    );
    assert!(said.contains("--accept-gone"), "{said}");
    assert!(
        shown.contains("\nAlready gone, says the provider\n  local_file.one: already gone"),
        "{shown}"
    );
    let Previewed { code, said, .. } = files.preview(&["--accept-gone"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_preview_in_which_some_is_gone_tells_of_it_and_of_what_is_destroyed() {
    let Some(files) = Files::of("demo") else {
        return;
    };
    files.apply(&["stays", "lost"]);
    files.deploy(&["stays"], None);
    std::fs::remove_file(files.file("lost")).unwrap();
    let Previewed { code, shown, said } = files.preview(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(shown.contains("\npresync: local_file.stays: destroy\npresync: local_file.lost: already gone, says the provider\n"), "{shown}");
    assert!(
        shown.contains("2 object(s) in the state: 1 destroyed, 0 forgotten, 1 already gone"),
        "{shown}"
    );
    // The lock file was not there.
    assert!(
        shown.contains("the version of registry.terraform.io/hashicorp/local"),
        "{shown}"
    );
    assert!(files.file("stays").exists(), "a preview destroys nothing");
}

/// The lock file with one digit of a provider's hash changed.
fn with_another_hash(lock: &str) -> String {
    let at = lock.find("\"h1:").unwrap() + 4;
    let other = if lock.as_bytes()[at] == b'A' {
        "B"
    } else {
        "A"
    };
    format!("{}{other}{}", &lock[..at], &lock[at + 1..])
}

#[test]
fn a_dropped_resource_that_is_gone_already_is_told_though_terraform_says_no_changes() {
    let Some(files) = Files::of("prd") else {
        return;
    };
    files.apply(&["stays", "dropped"]);
    files.deploy(&["stays"], None);
    std::fs::remove_file(files.file("dropped")).unwrap();
    let (code, lines, log) = files.plan();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(
        lines,
        [
            "presync: the plan carries no changes",
            "presync: local_file.dropped: already gone, says the provider",
            "presync: plan only: nothing was applied and no volume was reattached",
        ]
    );
}

#[test]
fn resources_that_are_gone_are_told_beside_the_changes() {
    let Some(files) = Files::of("prd") else {
        return;
    };
    files.apply(&["stays", "dropped", "lost", "retired"]);
    files.deploy(&["stays", "lost", "added"], None);
    std::fs::remove_file(files.file("dropped")).unwrap();
    std::fs::remove_file(files.file("lost")).unwrap();
    let (code, lines, log) = files.plan();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(
        lines,
        [
            "presync: the plan carries 3 change(s):",
            "presync: local_file.added: create",
            "presync: local_file.lost: create",
            "presync: local_file.retired: destroy",
            "presync: local_file.dropped: already gone, says the provider",
            "presync: local_file.lost: already gone, says the provider",
            "presync: plan only: nothing was applied and no volume was reattached",
        ]
    );
    assert!(files.file("retired").exists(), "a plan destroys nothing");
    assert!(!files.file("added").exists(), "a plan creates nothing");
}

#[test]
fn a_lock_file_that_fits_is_used_and_one_with_another_hash_fails() {
    let Some(files) = Files::of("prd") else {
        return;
    };
    let lock = files.apply(&["stays"]);
    files.deploy(&["stays"], Some(&lock));
    let (code, lines, log) = files.plan();
    assert_eq!(code, Some(0), "{log}");
    assert!(lines.contains(&"presync: the plan carries no changes".to_owned()));

    let other = with_another_hash(&lock);
    let head = files.estate.commit("FieldnotesDeploy", |files: &Path| {
        std::fs::write(files.join("terraform/.terraform.lock.hcl"), &other).unwrap();
    });
    let (code, lines, log) = files.plan();
    assert_eq!(code, Some(4), "{log}");
    assert_eq!(lines, Vec::<String>::new(), "nothing was planned");
    assert!(
        log.ends_with(
            "presync: terraform init ended with exit code 1; its own message stands above\n"
        ),
        "{log}"
    );
    // The repository's own lock file is as it was committed.
    let kept = files
        .estate
        .program("git")
        .arg("--git-dir")
        .arg(files.estate.repository("FieldnotesDeploy"))
        .args(["show", &format!("{head}:terraform/.terraform.lock.hcl")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(kept.stdout).unwrap(), other);
}
