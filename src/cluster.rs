//! The Kubernetes API: reached as the pod's own service account or by a named context, never by way of a kubeconfig's current one. Every
//! request has a bound, and a list is whole or an error.

pub mod applications;
pub mod job;
pub mod launch;
pub mod logs;
pub mod namespaces;
pub mod run;
pub mod start;
pub mod verdict;

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::api::ListParams;
use kube::config::{KubeConfigOptions, KubeconfigError};
use kube::core::Status;
use kube::{Api, Client, Config};
use serde::de::DeserializeOwned;

/// Where Kubernetes tells a pod the API server (<https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/>).
const SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";
const SERVICE_PORT: &str = "KUBERNETES_SERVICE_PORT";
/// Where a pod's service account is mounted.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How long one request may take, with the client's own new attempts after "too many requests" and "unavailable".
const REQUEST: Duration = Duration::from_secs(30);
/// How many objects one page of a list has.
const PAGE: u32 = 500;
/// How often a list is begun, when the API server forgets the rest of one before it was read.
const LISTINGS: usize = 5;

/// Why there is no service account to work as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotInPod {
    /// Kubernetes sets both variables in each container.
    #[error("this does not run in a pod ({variable} is not set)")]
    Variable {
        /// The one that is missing.
        variable: &'static str,
    },
    /// The pod has no account mounted.
    #[error(
        "this pod has no service account token ({} is missing: automountServiceAccountToken is off)",
        file.display()
    )]
    NoToken {
        /// Where the token would be.
        file: PathBuf,
    },
}

/// The pod's own service account, as Kubernetes mounts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodAccount {
    host: String,
    port: String,
    folder: PathBuf,
}

impl PodAccount {
    /// Looks whether this process runs in a pod with a service account.
    pub fn find() -> Result<PodAccount, NotInPod> {
        PodAccount::mounted(|name| std::env::var(name).ok(), Path::new(ACCOUNT))
    }

    /// The same with other variables and another mount than those of this process.
    pub(crate) fn mounted(
        variable: impl Fn(&str) -> Option<String>,
        folder: &Path,
    ) -> Result<PodAccount, NotInPod> {
        let set = |name| {
            variable(name)
                .filter(|value| !value.is_empty())
                .ok_or(NotInPod::Variable { variable: name })
        };
        let account = PodAccount {
            host: set(SERVICE_HOST)?,
            port: set(SERVICE_PORT)?,
            folder: folder.to_owned(),
        };
        let file = account.token_file();
        if file.exists() {
            Ok(account)
        } else {
            Err(NotInPod::NoToken { file })
        }
    }

    /// The API server's URL.
    pub fn server(&self) -> String {
        let PodAccount { host, port, .. } = self;
        if host.contains(':') {
            format!("https://[{host}]:{port}")
        } else {
            format!("https://{host}:{port}")
        }
    }

    /// The file that holds the token; Kubernetes writes it anew before the token expires.
    pub fn token_file(&self) -> PathBuf {
        self.folder.join("token")
    }

    /// The file that holds the certificate authorities of the API server.
    pub fn authorities_file(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The file that holds the pod's namespace.
    pub fn namespace_file(&self) -> PathBuf {
        self.folder.join("namespace")
    }
}

/// Why the API server could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The account's files, or the variables with the server's address.
    #[error("the pod's service account could not be used")]
    Account(#[source] kube::config::InClusterError),
    /// The kubeconfig has no such context, or it cannot be used.
    #[error("the context {context:?} of the kubeconfig could not be used")]
    Context {
        /// The context.
        context: String,
        /// Why.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// The client could not be made.
    #[error("no client for the Kubernetes API could be made")]
    Client(#[source] kube::Error),
    /// It answered, and this is what it said.
    #[error("the Kubernetes API answered {code}: {message}")]
    Answer {
        /// The HTTP status.
        code: u16,
        /// In the server's words.
        message: String,
    },
    /// It did not answer in time.
    #[error("the Kubernetes API did not answer within {} s", REQUEST.as_secs())]
    TimedOut,
    /// It could not be asked, or its answer was not understood.
    #[error("the Kubernetes API could not be asked")]
    Request(#[source] kube::Error),
    /// The list never came to its end.
    #[error(
        "the Kubernetes API forgot the rest of a list before it was read, {LISTINGS} times over"
    )]
    ListExpired,
}

impl ClusterError {
    /// The HTTP status of the API server's answer, where there was one.
    pub fn code(&self) -> Option<u16> {
        match self {
            ClusterError::Answer { code, .. } => Some(*code),
            ClusterError::Account(_)
            | ClusterError::Context { .. }
            | ClusterError::Client(_)
            | ClusterError::TimedOut
            | ClusterError::Request(_)
            | ClusterError::ListExpired => None,
        }
    }
}

impl ClusterError {
    /// Whether no answer came: the connection could not be made, or broke.
    pub fn is_no_answer(&self) -> bool {
        let ClusterError::Request(error) = self else {
            return matches!(self, ClusterError::TimedOut);
        };
        matches!(
            error,
            kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_)
        )
    }
}

impl From<kube::Error> for ClusterError {
    fn from(error: kube::Error) -> ClusterError {
        match error {
            kube::Error::Api(status) => {
                let Status { code, message, .. } = *status;
                ClusterError::Answer { code, message }
            }
            error => ClusterError::Request(error),
        }
    }
}

/// One cluster's API.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    once: Client,
}

impl Cluster {
    /// The cluster that this process runs in, as the pod's service account.
    pub fn of_pod() -> Result<Cluster, ClusterError> {
        Cluster::from_config(Config::incluster().map_err(ClusterError::Account)?)
    }

    /// The cluster of this context of the user's kubeconfig (`KUBECONFIG`, else `~/.kube/config`), whichever is its current one.
    pub async fn of_context(context: &str) -> Result<Cluster, ClusterError> {
        let options = KubeConfigOptions {
            context: Some(context.to_owned()),
            ..KubeConfigOptions::default()
        };
        let config = Config::from_kubeconfig(&options).await;
        Cluster::from_config(config.map_err(|source| ClusterError::Context {
            context: context.to_owned(),
            source: Box::new(source),
        })?)
    }

    /// A cluster that was chosen by the caller. Must be called within a Tokio runtime.
    pub fn from_config(config: Config) -> Result<Cluster, ClusterError> {
        let mut once = config.clone();
        once.default_retry = false;
        Ok(Cluster {
            client: Client::try_from(config).map_err(ClusterError::Client)?,
            once: Client::try_from(once).map_err(ClusterError::Client)?,
        })
    }

    /// The client, for the requests of one kind of object; each goes through [`Cluster::ask`].
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The client that asks once: for who makes new attempts of its own, and has to know of each that failed.
    pub fn client_without_attempts(&self) -> Client {
        self.once.clone()
    }

    /// Makes one request, within its bound.
    pub async fn ask<T>(
        &self,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ClusterError> {
        let answer = tokio::time::timeout(REQUEST, request).await;
        Ok(answer.map_err(|_elapsed| ClusterError::TimedOut)??)
    }

    /// Reads all objects, page by page. A list that the server forgets half-way is begun anew, a bounded number of times:
    /// what cannot be read whole is an error.
    pub async fn list<K>(&self, api: &Api<K>) -> Result<Vec<K>, ClusterError>
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        for _ in 0..LISTINGS {
            match self.pages(api).await {
                // Continue tokens live as long as the server keeps old versions, 5 to 15 minutes
                // (https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks).
                Err(error) if error.code() == Some(410) => {}
                read => return read,
            }
        }
        Err(ClusterError::ListExpired)
    }

    async fn pages<K>(&self, api: &Api<K>) -> Result<Vec<K>, ClusterError>
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let mut page = ListParams::default().limit(PAGE);
        let mut objects = Vec::new();
        loop {
            let list = self.ask(api.list(&page)).await?;
            objects.extend(list.items);
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(objects),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(host: &str, port: &str, folder: &Path) -> Result<PodAccount, NotInPod> {
        let variable = |name: &str| match name {
            "KUBERNETES_SERVICE_HOST" => Some(host.to_owned()),
            "KUBERNETES_SERVICE_PORT" => Some(port.to_owned()),
            _ => None,
        };
        PodAccount::mounted(variable, folder)
    }

    fn mount() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "t").unwrap();
        folder
    }

    #[test]
    fn without_the_variables_it_is_no_pod() {
        let folder = mount();
        let missing = |variable| Err(NotInPod::Variable { variable });
        let none = PodAccount::mounted(|_| None, folder.path());
        assert_eq!(none, missing("KUBERNETES_SERVICE_HOST"));
        let empty = account("", "443", folder.path());
        assert_eq!(empty, missing("KUBERNETES_SERVICE_HOST"));
        let no_port = account("10.96.0.1", "", folder.path());
        assert_eq!(no_port, missing("KUBERNETES_SERVICE_PORT"));
    }

    #[test]
    fn a_pod_without_a_mounted_token_is_told_from_no_pod() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let found = account("10.96.0.1", "443", folder.path());
        assert_eq!(found, Err(NotInPod::NoToken { file }));
    }

    #[test]
    fn an_ipv6_server_stands_in_brackets() {
        let folder = mount();
        let server = |host, port| account(host, port, folder.path()).unwrap().server();
        assert_eq!(server("10.96.0.1", "443"), "https://10.96.0.1:443");
        assert_eq!(server("fd00::1", "6443"), "https://[fd00::1]:6443");
        assert_eq!(server("api.example", "443"), "https://api.example:443");
    }
}
