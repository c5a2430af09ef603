//! INT and TERM, caught in this one place.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Which signal asked us to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// INT: Ctrl-C at a terminal.
    Int,
    /// TERM: Jenkins, the kubelet, `kill`.
    Term,
}

impl std::fmt::Display for StopSignal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StopSignal::Int => "INT",
            StopSignal::Term => "TERM",
        })
    }
}

/// The stop signals of this process. From the moment it exists neither ends the process by itself.
pub struct Stop {
    int: Signal,
    term: Signal,
}

impl Stop {
    /// Starts to catch INT and TERM. Needs a tokio runtime.
    pub fn listen() -> io::Result<Stop> {
        Ok(Stop {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next stop signal; each one is told once. Safe to drop and ask again.
    pub async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.int.recv() => StopSignal::Int,
            _ = self.term.recv() => StopSignal::Term,
        }
    }
}
