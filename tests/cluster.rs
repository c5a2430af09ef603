//! What `deploy/` grants and refuses in a real cluster, launches there, and under a real Argo CD the PreSync hook and the preview
//! of a stage that it has pruned.

#[path = "cluster/admission.rs"]
mod admission;
#[path = "cluster/applications.rs"]
mod applications;
#[path = "cluster/destroying.rs"]
mod destroying;
#[path = "cluster/hook.rs"]
mod hook;
#[path = "support/launches.rs"]
mod launches;
#[path = "cluster/launching.rs"]
mod launching;
#[path = "cluster/logs.rs"]
mod logs;
#[path = "support/pod_log.rs"]
mod pod_log;
#[path = "cluster/retired.rs"]
mod retired;
#[path = "cluster/rights.rs"]
mod rights;
#[path = "support/testbed.rs"]
mod testbed;
#[path = "support/tools.rs"]
mod tools;
