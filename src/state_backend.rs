//! Terraform's state, kept in a git repository: read and written there ([`store`]), sealed and opened ([`seal`]) for its
//! [`recipients`], locked ([`lock`], [`locks`]), and given to Terraform by its HTTP protocol on loopback ([`http`]).

mod attempts;
pub mod http;
pub mod lock;
pub mod locks;
pub mod provenance;
pub mod recipients;
pub mod same;
pub mod seal;
pub mod session;
pub mod store;
mod succession;
