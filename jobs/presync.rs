//! `presync`: what runs in the cluster.

use std::process::ExitCode;

use stagewright::{child, presync};

fn main() -> ExitCode {
    child::become_program().unwrap_or_else(presync::main)
}
