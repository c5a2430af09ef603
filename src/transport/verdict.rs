//! What the end of a run means for the job that launched it.

use crate::report::Outcome;
use crate::stop::StopSignal;

use super::follow::Complete;
use super::summary::Class;

/// What a run's end means for the job. Where several hold, a stop of the job itself goes first (nothing else was
/// waited for), then the lock, then what moved, then the failed run, then the incomplete log.
pub fn of_run(class: Option<Class>, complete: &Complete, stopped: Option<StopSignal>) -> Outcome {
    if let Some(signal) = stopped {
        return Outcome::of_stop(signal);
    }
    match (class, complete) {
        (Some(Class::Locked), _) => Outcome::Locked,
        (Some(Class::Moved), _) => Outcome::Moved,
        (Some(Class::Terraform | Class::Stopped) | None, _) => Outcome::RunFailed,
        (Some(Class::Failed), _) => Outcome::Failed,
        (Some(Class::Usage), _) => Outcome::Usage,
        (Some(Class::Refused), _) => Outcome::Refused,
        (Some(Class::Later), _) => Outcome::Later,
        (Some(Class::Done), Complete::No(_)) => Outcome::LogIncomplete,
        (Some(Class::Done), Complete::Yes) => Outcome::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_several_hold_the_lock_goes_before_the_move_the_failed_run_and_the_incomplete_log() {
        let cut = Complete::No("cut".to_owned());
        let of = |class| of_run(Some(class), &cut, None).code();
        assert_eq!(
            [Class::Locked, Class::Moved, Class::Terraform, Class::Done].map(of),
            [9, 5, 4, 8]
        );
        let whole = of_run(Some(Class::Done), &Complete::Yes, None);
        assert_eq!(whole.code(), 0);
        let killed = of_run(None, &cut, None);
        assert_eq!(killed.code(), 4);
        let stopped = of_run(Some(Class::Stopped), &cut, Some(StopSignal::Int));
        assert_eq!(stopped.code(), 130);
    }
}
