//! stagewright: job programs that plan, retire and register the stages of an Argo CD + Terraform estate.
//!
//! The map, one line a room; imports point down only (`tests/imports.rs` keeps it so):
//!
//! * stories: [`plan`] plans one stage and reports what an apply would change
//! * in the cluster: [`presync`] what runs in a launch's pod and in the PreSync hook; [`local`] the same as a child process
//! * adapters: [`forge`] repositories, branches, files; [`git`] the git program; [`terraform`] running it, its plans, states
//!   and roots; [`state_backend`] Terraform's state in a git repository; [`transport`] what passes between a job and presync;
//!   [`sandbox`] the embedded estate
//! * domain, plain and synchronous: [`registry`] which app has which stages; [`settings`] stagewright.yaml; [`layout`] paths
//!   and names as templates; [`yaml`] YAML with places
//! * names: [`names`] everything that is parsed once, at the border
//! * beside them: [`arguments`] the flags that all jobs share; [`report`] outcome to exit code, result file, the only room that prints; [`stop`] INT and TERM;
//!   [`child`] programs that die with us; [`scratch`] private working folders

pub mod arguments;
pub mod child;
pub mod forge;
pub mod git;
pub mod layout;
pub mod local;
pub mod names;
pub mod plan;
pub mod presync;
pub mod registry;
pub mod report;
pub mod sandbox;
pub mod scratch;
pub mod settings;
pub mod state_backend;
pub mod stop;
pub mod terraform;
pub mod transport;
pub mod yaml;
