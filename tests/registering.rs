//! Jenkins over HTTP as the program sees it, and whole registrations: with plain git and with GitHub as the forge, alone and at once.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "registering/adapter.rs"]
mod adapter;
#[path = "registering/certificates.rs"]
mod certificates;
#[path = "registering/estate.rs"]
mod estate;
#[path = "support/github.rs"]
#[expect(dead_code, reason = "other tests ask more of it")]
mod github;
#[path = "support/jenkins.rs"]
mod jenkins;
#[path = "registering/meeting.rs"]
mod meeting;
#[path = "registering/on_github.rs"]
mod on_github;
#[path = "support/proxy.rs"]
mod proxy;
#[path = "support/repositories.rs"]
mod repositories;
