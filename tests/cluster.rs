//! What `deploy/` grants and refuses in a real cluster.

#[path = "cluster/admission.rs"]
mod admission;
#[path = "cluster/rights.rs"]
mod rights;
#[path = "support/testbed.rs"]
mod testbed;
#[path = "support/tools.rs"]
mod tools;
