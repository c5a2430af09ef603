//! INT and TERM, caught in this one place.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

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

/// A signal counts as a second one only this long after the first: `timeout` and others signal a program and then its
/// group, so that it gets the same one twice.
const TWICE: Duration = Duration::from_secs(1);

/// Whether a signal at `now` is meant as another one after the `first`.
pub fn is_second(first: Instant, now: Instant) -> bool {
    now.duration_since(first) >= TWICE
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_twice_at_once_is_one() {
        let first = Instant::now();
        assert!(!is_second(first, first));
        assert!(!is_second(first, first + Duration::from_millis(999)));
        assert!(is_second(first, first + Duration::from_secs(1)));
    }
}
