//! Whether a namespace is still there.

use k8s_openapi::api::core::v1::Namespace as Object;
use kube::Api;

use crate::names::Namespace;
use crate::preview::objections::Namespaced;
use crate::report;

use super::Cluster;

/// Looks for one namespace. Not being able to look is an answer, too: the right to do so is not needed for anything else.
pub async fn look(cluster: &Cluster, name: &Namespace) -> Namespaced {
    let namespaces: Api<Object> = Api::all(cluster.client());
    match cluster.ask(namespaces.get_opt(name.as_str())).await {
        Ok(None) => Namespaced::NotFound,
        Ok(Some(found)) if found.metadata.deletion_timestamp.is_some() => Namespaced::Ending,
        Ok(Some(_)) => Namespaced::Lives,
        Err(error) => Namespaced::Unknown(report::one_line(&error)),
    }
}
