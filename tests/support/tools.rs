//! Tools that a machine may lack: a test that finds none is left out by `cargo test` alone, and fails under `tests/run`.

use std::io::Write;

/// Whether `variable` is set to 1.
pub fn is_on(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// What was found. Without it the test is left out, with a line that is seen, or fails where `required` is on.
pub fn found_or_left_out<T>(what: &str, required: &str, found: Option<T>) -> Option<T> {
    if found.is_none() {
        assert!(!is_on(required), "{required}=1, and there is no {what}");
        let test = std::thread::current();
        let name = test.name().unwrap_or("a test");
        // Not eprintln!, which is caught and shown for failed tests alone.
        writeln!(std::io::stderr(), "left out, needs {what}: {name}").ok();
    }
    found
}
