//! Resources that the provider no longer finds, with a real provider (`local`), and the root's lock file.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/estate.rs"]
mod estate;
#[path = "support/tools.rs"]
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use estate::Estate;

const STATE: &str = "argocd/FieldnotesDeploy/prd/terraform.tfstate";

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

/// An estate whose FieldnotesDeploy/prd has files as its resources.
struct Files {
    estate: Estate,
}

impl Files {
    /// `None` where the provider is not there.
    fn new() -> Option<Files> {
        let mirror = mirror()?;
        let estate = Estate::unpack();
        let configuration = format!(
            "provider_installation {{\n  filesystem_mirror {{\n    path = \"{}\"\n  }}\n}}\n",
            mirror.display()
        );
        std::fs::write(estate.path().join("terraformrc"), configuration).unwrap();
        Some(Files { estate })
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
            std::fs::copy(work.join("terraform.tfstate"), files.join(STATE)).unwrap();
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
    let Some(files) = Files::new() else { return };
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
    let Some(files) = Files::new() else { return };
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
    let Some(files) = Files::new() else { return };
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
