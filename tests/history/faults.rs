//! The server's faults: which of its requests meets which one, as the seed says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Response, StatusCode};

use crate::git_http::{Asked, Between};
use crate::random::Random;

/// The variable by which the repository's pre-receive hook is told to decline.
pub const DECLINE: &str = "HISTORY_DECLINE";

/// One push in so many meets a fault.
const PUSHES: usize = 5;
/// And one other request in so many.
const OTHERS: usize = 40;

/// What befalls a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The server answers 503 and does nothing.
    Unavailable,
    /// The repository's hook declines the push.
    Declined,
    /// The connection is cut before git sees the request.
    CutBefore,
    /// It is cut when git has done everything and said nothing.
    CutAfter,
    /// It is cut, and git sees the request only later.
    Late,
    /// The answer takes its time.
    Slow,
}

/// What a push may meet.
pub const OF_PUSHES: [Fault; 6] = [
    Fault::Unavailable,
    Fault::Declined,
    Fault::CutBefore,
    Fault::CutAfter,
    Fault::Late,
    Fault::Slow,
];
const OF_OTHERS: [Fault; 4] = [
    Fault::Unavailable,
    Fault::CutBefore,
    Fault::CutAfter,
    Fault::Slow,
];

/// The faults of one run.
pub struct Script {
    seed: u64,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    pushes: usize,
    others: usize,
    off: bool,
    met: BTreeMap<Fault, usize>,
}

impl Script {
    pub fn new(seed: u64) -> Arc<Script> {
        Arc::new(Script {
            seed,
            written: Mutex::default(),
        })
    }

    /// From now on nothing befalls anybody.
    pub fn end(&self) {
        self.written.lock().unwrap().off = true;
    }

    /// How many pushes met what.
    pub fn met(&self) -> BTreeMap<Fault, usize> {
        self.written.lock().unwrap().met.clone()
    }

    /// All pushes so far.
    pub fn pushes(&self) -> usize {
        self.written.lock().unwrap().pushes
    }

    fn next(&self, push: bool) -> (Option<Fault>, Duration) {
        let mut written = self.written.lock().unwrap();
        let count = if push {
            &mut written.pushes
        } else {
            &mut written.others
        };
        let number = *count;
        *count += 1;
        let (every, faults): (usize, &[Fault]) = if push {
            (PUSHES, &OF_PUSHES)
        } else {
            (OTHERS, &OF_OTHERS)
        };
        // One in each group of `every`, and each fault once in a round of groups.
        let group = number / every;
        let salt = u64::from(push) << 63;
        let mut of_group = Random(self.seed ^ salt ^ u64::try_from(group).unwrap_or_default());
        let here = of_group.below(every) == number % every;
        let round = u64::try_from(group / faults.len()).unwrap_or_default();
        let shift = Random(self.seed ^ salt ^ round.rotate_left(32)).below(faults.len());
        let wait = Duration::from_millis(50 + of_group.next() % 400);
        if !here || written.off {
            return (None, wait);
        }
        let fault = faults[(group + shift) % faults.len()];
        if push {
            *written.met.entry(fault).or_default() += 1;
        }
        (Some(fault), wait)
    }

    /// The script, as the server takes it.
    pub fn between(self: &Arc<Script>) -> Between {
        let script = Arc::clone(self);
        Arc::new(move |asked| {
            let script = Arc::clone(&script);
            Box::pin(async move { script.answer(asked).await })
        })
    }

    async fn answer(&self, asked: Asked) -> Response<Body> {
        let path = asked.head.uri.path();
        let push = asked.head.method == Method::POST && path.ends_with("/git-receive-pack");
        let (fault, wait) = self.next(push);
        match fault {
            None => whole(asked, &[]).await,
            Some(Fault::Unavailable) => Response::builder()
                .status(StatusCode::SERVICE_UNAVAILABLE)
                .body(Body::empty())
                .unwrap(),
            Some(Fault::Declined) => whole(asked, &[(DECLINE, "1")]).await,
            Some(Fault::CutBefore) => cut(),
            Some(Fault::CutAfter) => {
                drop(whole(asked, &[]).await);
                cut()
            }
            Some(Fault::Late) => {
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    asked.answer(&[]).await
                });
                cut()
            }
            Some(Fault::Slow) => {
                tokio::time::sleep(wait).await;
                whole(asked, &[]).await
            }
        }
    }
}

/// git's answer. A client that goes away ends nothing: a server that has a push carries it out.
async fn whole(asked: Asked, variables: &'static [(&str, &str)]) -> Response<Body> {
    tokio::spawn(async move { asked.answer(variables).await })
        .await
        .unwrap()
}

/// Ends the connection's task, and with it the connection, without a word to the client or on stderr.
fn cut() -> Response<Body> {
    std::panic::resume_unwind(Box::new("cut"))
}
