//! stagewright: job programs that plan, retire and check the stages of an Argo CD + Terraform estate.
//!
//! The map, one line a room, from the top down; a room uses those below it and those of its own line
//! (`tests/imports.rs` keeps it so):
//!
//! * [`arguments`] the flags that all jobs share
//! * [`plan`] the story of planning one stage
//! * [`destroy_stage`] the story of destroying what a retired stage left
//! * [`registry_check`] the story of checking the registry
//! * [`write_probe`] the story of trying the forge's writes on a scratch branch
//! * [`register_producer`] the story of registering who publishes architecture
//! * [`runner`] presync by what the settings name, followed to its end
//! * [`local`] presync as a child process of the job
//! * [`presync`] what runs in a pod, in the PreSync hook, or under the local runner
//! * [`estate`] what every story reads first: forge, registry, cluster, states
//! * [`forge`] repositories, branches, files; [`jenkins`] builds and what they archived; [`cluster`] the Kubernetes API; [`state_backend`] Terraform's state in a git
//!   repository; [`transport`] what passes between a job and presync; [`preview`] what a destroy would take
//! * [`page`] a report for people, as HTML and as Markdown
//! * [`git`] the git program and what it fetched; [`terraform`] running it, its plans, states, roots and their reduction;
//!   [`sandbox`] the embedded estate
//! * [`web`] the client for services of HTTP; [`child`] programs that die with us; [`scratch`] private working folders
//! * [`guard`] whether a stage is deployed by nothing any more
//! * [`settings`] stagewright.yaml; [`registry`] which app has which stages, and what is wrong with that; [`applications`] what is deployed, as Argo CD
//!   has it; [`producers`] who publishes architecture; [`layout`] paths and names as templates;
//!   [`protect`] what an apply may not destroy
//! * [`report`] outcome to exit code, result file, every line that a job prints
//! * [`findings`] what a check found
//! * [`names`] everything that is parsed once, at the border; [`yaml`] YAML with places; [`stop`] INT and TERM

pub mod applications;
pub mod arguments;
pub mod child;
pub mod cluster;
pub mod destroy_stage;
pub mod estate;
pub mod findings;
pub mod forge;
pub mod git;
pub mod guard;
pub mod jenkins;
pub mod layout;
pub mod local;
pub mod names;
pub mod page;
pub mod plan;
pub mod presync;
pub mod preview;
pub mod producers;
pub mod protect;
pub mod register_producer;
pub mod registry;
pub mod registry_check;
pub mod report;
pub mod runner;
pub mod sandbox;
pub mod scratch;
pub mod settings;
pub mod state_backend;
pub mod stop;
pub mod terraform;
pub mod transport;
pub mod web;
pub mod write_probe;
pub mod yaml;
