//! Jenkins over HTTP as the program sees it, and registrations that meet.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "registering/adapter.rs"]
mod adapter;
#[path = "support/jenkins.rs"]
mod jenkins;
#[path = "registering/meeting.rs"]
mod meeting;
#[path = "support/repositories.rs"]
mod repositories;
