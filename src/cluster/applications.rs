//! The live Applications of an Argo CD, read whole or not at all, page by page: of each only what is asked for is kept.

use kube::api::ListParams;
use kube::core::Request;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::applications::ApplicationError;
use crate::names::Namespace;

use super::{Cluster, ClusterError};

/// How many Applications a page has: one can be as large as a megabyte.
const PAGE: u32 = 100;
/// How often a list is begun, when the API server forgets the rest of one before it was read.
const LISTINGS: usize = 5;
/// Where they are, in one namespace or in all.
const GROUP: &str = "/apis/argoproj.io/v1alpha1";

/// Why the live Applications are not known.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationsError {
    /// They may not be listed.
    #[error(
        "the account may not list the Applications of {whence}: it needs list of applications.argoproj.io there (deploy/rbac/applications.yaml)"
    )]
    Forbidden {
        /// A namespace, or the whole cluster.
        whence: String,
        /// In the server's words.
        #[source]
        source: ClusterError,
    },
    /// The cluster knows no Applications.
    #[error(
        "the cluster has no Applications at all (no CustomResourceDefinition applications.argoproj.io): is it the one that Argo CD runs in?"
    )]
    NoArgo(#[source] ClusterError),
    /// The list could not be read.
    #[error("the Applications of {whence} could not be listed")]
    List {
        /// A namespace, or the whole cluster.
        whence: String,
        /// Why.
        #[source]
        source: ClusterError,
    },
    /// A page that is none.
    #[error("the API server's list of the Applications of {whence} was not understood")]
    Page {
        /// A namespace, or the whole cluster.
        whence: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// One of them could not be read.
    #[error(transparent)]
    Object(#[from] ApplicationError),
    /// The list never came to its end.
    #[error(
        "the API server forgot the rest of the list of the Applications of {whence} before it was read, {LISTINGS} times over"
    )]
    Expired {
        /// A namespace, or the whole cluster.
        whence: String,
    },
    /// There are fewer than there must be.
    #[error(
        "only {found} Applications were found, and at least {minimum} are expected: a list that looks so short may be the wrong cluster's"
    )]
    TooFew {
        /// How many there are.
        found: usize,
        /// How many there must be.
        minimum: usize,
    },
}

/// Reads the Applications of these namespaces, each by `read`; of the whole cluster where no namespace is named. Fewer than
/// `minimum` are an error.
pub async fn list<T>(
    cluster: &Cluster,
    namespaces: &[Namespace],
    minimum: usize,
    read: fn(&str) -> Result<T, ApplicationError>,
) -> Result<Vec<T>, ApplicationsError> {
    let mut applications = Vec::new();
    if namespaces.is_empty() {
        applications = list_in(cluster, None, read).await?;
    }
    for namespace in namespaces {
        applications.extend(list_in(cluster, Some(namespace), read).await?);
    }
    if applications.len() < minimum {
        return Err(ApplicationsError::TooFew {
            found: applications.len(),
            minimum,
        });
    }
    Ok(applications)
}

async fn list_in<T>(
    cluster: &Cluster,
    namespace: Option<&Namespace>,
    read: fn(&str) -> Result<T, ApplicationError>,
) -> Result<Vec<T>, ApplicationsError> {
    let whence = namespace.map_or("the whole cluster".to_owned(), Namespace::to_string);
    for _ in 0..LISTINGS {
        match pages(cluster, namespace, &whence, read).await {
            // Begun anew, and never continued by the token that comes with the answer: what it leads to is another list.
            Err(ApplicationsError::List { source, .. }) if source.code() == Some(410) => {}
            listed => return listed,
        }
    }
    Err(ApplicationsError::Expired { whence })
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    items: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue")]
    continues: Option<String>,
}

async fn pages<T>(
    cluster: &Cluster,
    namespace: Option<&Namespace>,
    whence: &str,
    read: fn(&str) -> Result<T, ApplicationError>,
) -> Result<Vec<T>, ApplicationsError> {
    let path = match namespace {
        Some(namespace) => format!("{GROUP}/namespaces/{namespace}/applications"),
        None => format!("{GROUP}/applications"),
    };
    let failed = |source: ClusterError| {
        let whence = whence.to_owned();
        match source.code() {
            Some(401 | 403) => ApplicationsError::Forbidden { whence, source },
            Some(404) => ApplicationsError::NoArgo(source),
            _ => ApplicationsError::List { whence, source },
        }
    };
    let mut applications = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let request = Request::new(&path)
            .list(&parameters)
            .map_err(|error| failed(kube::Error::BuildRequest(error).into()))?;
        let client = cluster.client();
        let text = cluster
            .ask(client.request_text(request))
            .await
            .map_err(failed)?;
        let page: Page = serde_json::from_str(&text).map_err(|source| ApplicationsError::Page {
            whence: whence.to_owned(),
            source,
        })?;
        for item in page.items {
            applications.push(read(item.get())?);
        }
        match page.metadata.continues.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(applications),
        }
    }
}
