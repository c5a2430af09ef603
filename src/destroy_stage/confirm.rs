//! The confirmation at a terminal: the target is typed.

use std::io::{self, BufRead, IsTerminal};

use rustix::termios::{QueueSelector, tcflush};

use crate::report;
use crate::stop::{Stop, StopSignal};

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The target was typed.
    Yes,
    /// Anything else, the end of the input and a missing terminal included.
    No,
    /// A signal came first.
    Stopped(StopSignal),
}

/// Asks for the target on standard error, and reads one line of standard input, if that is a terminal.
pub(super) async fn ask(target: &str, stop: &mut Stop) -> Answer {
    if !io::stdin().is_terminal() {
        report::note(
            "standard input is no terminal, so nothing can be confirmed there: confirm by a record, destroy --record FILE",
        );
        return Answer::No;
    }
    // What was typed before all was shown answers nothing.
    if tcflush(io::stdin(), QueueSelector::IFlush).is_err() {
        return Answer::No;
    }
    report::note(format_args!(
        "To destroy what is shown above, type {target} and press Enter. Anything else ends it."
    ));
    // A thread of its own: a line that never comes must not keep a signal from being heard.
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let _asked = tell.send(read.map(|_| line));
    });
    tokio::select! {
        line = told => match line {
            // Without its end the input ended before Enter was pressed.
            Ok(Ok(line)) if line.strip_suffix('\n').map(|l| l.trim_end_matches('\r')) == Some(target) => Answer::Yes,
            _ => Answer::No,
        },
        signal = stop.next() => Answer::Stopped(signal),
    }
}
