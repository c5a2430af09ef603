//! What passes between a job and the presync that it launches, by whatever runner: arguments and environment one way,
//! a log with [`record`] lines in it and a termination [`summary`] the other way, read by [`follow`]
//! and judged by [`verdict`]; both ends take control sequences out with [`strip`].

pub mod ended;
pub mod follow;
pub mod record;
pub mod request;
pub mod strip;
pub mod summary;
pub mod verdict;
