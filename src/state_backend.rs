//! Terraform's state, kept in a git repository: read from it ([`store`]), opened where it is sealed ([`seal`]), and
//! given to Terraform by its HTTP protocol on loopback ([`http`]).

pub mod http;
pub mod seal;
pub mod store;
