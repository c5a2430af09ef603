//! What `deploy/` grants and refuses in a real cluster, launches there, and the PreSync hook under a real Argo CD.

#[path = "cluster/admission.rs"]
mod admission;
#[path = "cluster/applications.rs"]
mod applications;
#[path = "cluster/hook.rs"]
mod hook;
#[path = "cluster/launches.rs"]
mod launches;
#[path = "cluster/logs.rs"]
mod logs;
#[path = "cluster/rights.rs"]
mod rights;
#[path = "support/testbed.rs"]
mod testbed;
#[path = "support/tools.rs"]
mod tools;
