//! What `deploy/` grants and refuses in a real cluster, launches there, and the PreSync hook under a real Argo CD.

#[path = "cluster/admission.rs"]
mod admission;
#[path = "cluster/hook.rs"]
mod hook;
#[path = "cluster/launches.rs"]
mod launches;
#[path = "cluster/rights.rs"]
mod rights;
#[path = "support/testbed.rs"]
mod testbed;
#[path = "support/tools.rs"]
mod tools;
