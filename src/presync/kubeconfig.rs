//! The kubeconfig that Terraform's providers get in a pod: the pod's own service account. It names the mounted files and
//! holds no token, so a token that is renewed during a long apply is used.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cluster::{NotInPod, PodAccount};

/// Where a provider or a program looks for its kubeconfig: the Kubernetes and Helm providers from version 2, those before
/// it, and kubectl.
const VARIABLES: [&str; 3] = ["KUBE_CONFIG_PATH", "KUBE_CONFIG", "KUBECONFIG"];
/// What else says which cluster the providers work on
/// (<https://registry.terraform.io/providers/hashicorp/kubernetes/latest/docs#argument-reference>).
const CHOICES: [&str; 2] = ["KUBE_CONFIG_PATHS", "KUBE_HOST"];

/// The kubeconfig could not be made.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// A file of the service account could not be read.
    #[error("{} of the pod's service account could not be read", file.display())]
    Account {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file could not be written.
    #[error("the providers' kubeconfig {} could not be written", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Writes `kubeconfig` (0600) into `folder` and returns the variables that lead Terraform's providers to it. Returns none,
/// and writes nothing, out of a pod, and where the environment names a cluster already by any variable of theirs: with
/// some of its variables and some of ours, two providers of one root would work on two clusters.
pub fn write(
    pod: &Result<PodAccount, NotInPod>,
    folder: &Path,
) -> Result<Vec<(String, OsString)>, KubeconfigError> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    write_unless(pod, folder, is_set)
}

fn write_unless(
    pod: &Result<PodAccount, NotInPod>,
    folder: &Path,
    is_set: impl Fn(&str) -> bool,
) -> Result<Vec<(String, OsString)>, KubeconfigError> {
    let Ok(account) = pod else {
        return Ok(Vec::new());
    };
    if VARIABLES.iter().chain(&CHOICES).any(|name| is_set(name)) {
        return Ok(Vec::new());
    }
    let text = kubeconfig(account)?;
    let file = folder.join("kubeconfig");
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)
        .and_then(|mut open| open.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(VARIABLES
            .map(|name| (name.to_owned(), file.clone().into()))
            .into()),
        Err(source) => Err(KubeconfigError::Write { file, source }),
    }
}

/// As JSON, which is YAML as well.
fn kubeconfig(account: &PodAccount) -> Result<String, KubeconfigError> {
    let file = account.namespace_file();
    let namespace = std::fs::read_to_string(&file)
        .map_err(|source| KubeconfigError::Account { file, source })?;
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "pod",
            "cluster": {
                "server": account.server(),
                "certificate-authority": account.authorities_file(),
            },
        }],
        "users": [{"name": "pod", "user": {"tokenFile": account.token_file()}}],
        "contexts": [{
            "name": "pod",
            "context": {"cluster": "pod", "user": "pod", "namespace": namespace.trim()},
        }],
        "current-context": "pod",
    });
    Ok(format!("{kubeconfig:#}\n"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const MOUNT: &str = "account";

    fn pod(folder: &Path, host: &str) -> Result<PodAccount, NotInPod> {
        let mount = folder.join(MOUNT);
        std::fs::create_dir(&mount).unwrap();
        std::fs::write(mount.join("token"), "a token").unwrap();
        std::fs::write(mount.join("namespace"), "argocd-hooks\n").unwrap();
        let variable = |name: &str| {
            let port = name == "KUBERNETES_SERVICE_PORT";
            Some(if port { "6443" } else { host }.to_owned())
        };
        PodAccount::mounted(variable, &mount)
    }

    #[test]
    fn the_file_names_the_mounted_files_and_holds_no_token() {
        let folder = tempfile::tempdir().unwrap();
        let pod = pod(folder.path(), "fd00::1");

        let variables = write_unless(&pod, folder.path(), |_| false).unwrap();

        let file = folder.path().join("kubeconfig");
        let expected = ["KUBE_CONFIG_PATH", "KUBE_CONFIG", "KUBECONFIG"]
            .map(|name| (name.to_owned(), file.clone().into_os_string()));
        assert_eq!(variables, expected);
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&file).unwrap();
        let mount = folder.path().join(MOUNT).display().to_string();
        assert_eq!(
            text.replace(&mount, "/mount"),
            r#"{
  "apiVersion": "v1",
  "kind": "Config",
  "clusters": [
    {
      "name": "pod",
      "cluster": {
        "server": "https://[fd00::1]:6443",
        "certificate-authority": "/mount/ca.crt"
      }
    }
  ],
  "users": [
    {
      "name": "pod",
      "user": {
        "tokenFile": "/mount/token"
      }
    }
  ],
  "contexts": [
    {
      "name": "pod",
      "context": {
        "cluster": "pod",
        "user": "pod",
        "namespace": "argocd-hooks"
      }
    }
  ],
  "current-context": "pod"
}
"#
        );
    }

    #[test]
    fn out_of_a_pod_and_beside_a_choice_of_the_callers_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let none = Err(NotInPod::Variable {
            variable: "KUBERNETES_SERVICE_HOST",
        });
        assert_eq!(write_unless(&none, folder.path(), |_| false).unwrap(), []);
        let pod = pod(folder.path(), "10.96.0.1");
        for chosen in [
            "KUBE_CONFIG_PATH",
            "KUBE_CONFIG",
            "KUBECONFIG",
            "KUBE_CONFIG_PATHS",
            "KUBE_HOST",
        ] {
            let variables = write_unless(&pod, folder.path(), |name| name == chosen).unwrap();
            assert_eq!(variables, [], "{chosen}");
        }
        assert!(!folder.path().join("kubeconfig").exists());
    }

    #[test]
    fn an_account_without_its_namespace_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let pod = pod(folder.path(), "10.96.0.1");
        let file = folder.path().join(MOUNT).join("namespace");
        std::fs::remove_file(&file).unwrap();
        let error = write_unless(&pod, folder.path(), |_| false).unwrap_err();
        assert!(matches!(&error, KubeconfigError::Account { file: named, .. } if *named == file));
        assert!(!folder.path().join("kubeconfig").exists());
    }
}
