//! The programs that a case finds on its PATH: links in a folder of its own, so that nothing else of the machine is there.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::case::Case;

/// The version of Terraform whose own words the expectations hold.
const RECORDED_WITH: &str = "1.11.";

pub struct Tools {
    path: Vec<PathBuf>,
    terraform: Option<String>,
}

impl Tools {
    pub fn find() -> Tools {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut tools = Tools {
            path: std::env::split_paths(&path).collect(),
            terraform: None,
        };
        tools.terraform = tools.terraform_version();
        tools
    }

    fn terraform_version(&self) -> Option<String> {
        let output = Command::new(self.program("terraform")?)
            .args(["version", "-json"])
            .env("CHECKPOINT_DISABLE", "1")
            .env_remove("TF_CLI_CONFIG_FILE")
            .output()
            .ok()?;
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        json.get("terraform_version")?.as_str().map(str::to_owned)
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        let files = self.path.iter().map(|folder| folder.join(name));
        files.into_iter().find(|file| file.is_file())
    }

    /// Whether the machine lacks a program that the case needs.
    pub fn missing(&self, case: &Case) -> bool {
        case.tools().any(|tool| self.program(tool).is_none())
    }

    /// Links the case's programs into `folder`.
    pub fn link(&self, case: &Case, folder: &Path) -> Result<(), String> {
        std::fs::create_dir(folder).unwrap();
        for tool in case.tools() {
            let program = self
                .program(tool)
                .ok_or_else(|| format!("there is no {tool} on PATH, which this case needs"))?;
            symlink(program, folder.join(tool)).unwrap();
        }
        Ok(())
    }

    /// The version of the Terraform on PATH.
    pub fn terraform(&self) -> Option<&str> {
        self.terraform.as_deref()
    }

    /// Whether Terraform's own words are those of the expectations. They differ between its versions, so with another one
    /// only our own lines of the log are compared: those beginning `presync: ` and `state backend: `.
    pub fn words_are_comparable(&self) -> bool {
        self.terraform
            .as_ref()
            .is_none_or(|version| version.starts_with(RECORDED_WITH))
    }
}
