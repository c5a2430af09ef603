//! What goes wrong on command.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use serde_json::Value;

use super::routes::Call;
use super::{Asked, Content, Reply, Shared, locked};

/// Requests that get something else than they asked for.
pub struct Fault {
    pub method: &'static str,
    /// What their path holds.
    pub path: &'static str,
    /// So many of them are answered as usual first.
    pub skip: usize,
    /// So many get the fault then.
    pub times: usize,
    pub what: What,
}

/// What they get.
#[derive(Clone)]
pub enum What {
    /// This answer; nothing is carried out.
    Answer(u16, Vec<(&'static str, String)>, Value),
    /// It is carried out, and this is answered.
    AnswerAfter(u16),
    /// The connection is cut; nothing is carried out.
    Cut,
    /// It is carried out, and the connection is cut in the middle of the answer.
    CutAfter,
    /// A ref as it was before it was last moved.
    Stale,
    /// A tree whose listing was cut off.
    Truncated,
    /// The answer, with this in place of a member.
    Bent(&'static str, Value),
    /// The answer, after a while.
    Slow(Duration),
    /// Somebody else does this first, and it is answered as usual.
    Meanwhile(std::sync::Arc<dyn Fn() + Send + Sync>),
    /// It is carried out, somebody else does this, and this is answered.
    AnswerAfterMeanwhile(std::sync::Arc<dyn Fn() + Send + Sync>, u16),
}

impl Fault {
    /// Once.
    pub fn once(method: &'static str, path: &'static str, what: What) -> Fault {
        Fault::times(1, method, path, what)
    }

    /// So many times.
    pub fn times(times: usize, method: &'static str, path: &'static str, what: What) -> Fault {
        Fault {
            method,
            path,
            skip: 0,
            times,
            what,
        }
    }
}

impl What {
    /// An answer in GitHub's form, without headers.
    pub fn refusal(status: u16, message: &str) -> What {
        What::Answer(status, Vec::new(), refusal(message))
    }

    /// The same with headers.
    pub fn with_headers(status: u16, message: &str, headers: &[(&'static str, &str)]) -> What {
        let headers = headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        What::Answer(status, headers.collect(), refusal(message))
    }

    pub(super) fn reply(&self, shared: &Shared, asked: &Asked, call: &Call) -> Reply {
        match self {
            What::Answer(status, headers, body) => Reply {
                status: *status,
                headers: headers.clone(),
                content: Content::Json(body.clone()),
            },
            What::AnswerAfter(status) => {
                call.carry_out(shared, asked);
                Reply::refusal(*status, "")
            }
            What::Cut => Reply::refusal(502, ""),
            What::CutAfter | What::Slow(_) => call.carry_out(shared, asked),
            What::Stale => {
                let mut reply = call.carry_out(shared, asked);
                if let Content::Json(value) = &mut reply.content
                    && let Some(before) = locked(&shared.before).get(&asked.path)
                {
                    value["object"]["sha"] = before.clone().into();
                }
                reply
            }
            What::Truncated => {
                let mut reply = call.carry_out(shared, asked);
                if let Content::Json(value) = &mut reply.content {
                    value["truncated"] = true.into();
                    value["tree"].as_array_mut().unwrap().pop();
                }
                reply
            }
            What::Bent(member, with) => {
                let mut reply = call.carry_out(shared, asked);
                if let Content::Json(value) = &mut reply.content {
                    value[*member] = with.clone();
                }
                reply
            }
            What::Meanwhile(act) => {
                act();
                call.carry_out(shared, asked)
            }
            What::AnswerAfterMeanwhile(act, status) => {
                call.carry_out(shared, asked);
                act();
                Reply::refusal(*status, "")
            }
        }
    }
}

fn refusal(message: &str) -> Value {
    serde_json::json!({ "message": message, "documentation_url": "https://docs.github.com/rest" })
}

/// The fault of this request, if it has one.
pub(super) fn taken(faults: &mut Vec<Fault>, asked: &Asked) -> Option<What> {
    let fits = |fault: &Fault| asked.method == fault.method && asked.path.contains(fault.path);
    let at = faults.iter().position(fits)?;
    let fault = &mut faults[at];
    if fault.skip > 0 {
        fault.skip -= 1;
        return None;
    }
    fault.times -= 1;
    let what = fault.what.clone();
    if fault.times == 0 {
        faults.remove(at);
    }
    Some(what)
}

/// An answer that ends before its end.
pub(super) fn cut() -> Response<Body> {
    let broken = std::io::Error::other("cut");
    let pieces: [Result<Bytes, std::io::Error>; 2] = [Ok(Bytes::from_static(b"{")), Err(broken)];
    Response::builder()
        .header("content-length", "1000")
        .body(Body::from_stream(futures_util::stream::iter(pieces)))
        .unwrap()
}
