//! `presync destroy`: what a retired stage left. The preview works on a copy of the state and writes nothing anywhere; what was
//! confirmed of it is then carried out ([`confirmed`]).

pub mod confirmed;
mod look;
mod told;

use crate::stop::Stop;
use crate::transport::record;
use crate::transport::request::StageRequest;

use super::PresyncError;
use super::environment::Environment;
use super::log::Log;
use super::prepare;
use super::source::ConfigFolder;

use look::{Found, Ground, Look};

/// Shows what a destroy would take, and writes the log.
pub async fn preview(
    request: &StageRequest,
    environment: &Environment,
    log: &mut Log,
    stop: &mut Stop,
) -> Result<(), PresyncError> {
    let read = async {
        let may_be_gone = ConfigFolder::MayBeGone;
        let prepared = prepare::prepare(request, may_be_gone, environment, None, log).await?;
        let (ground, mut store) = Ground::reduced(prepared, log)?;
        let key = &ground.key;
        prepare::say_where(environment, key, log);
        let state = store.read(key).await?.map(|stored| stored.state);
        let around = store.around(key).await?;
        Ok::<_, PresyncError>((ground, Found { state, around }))
    };
    let (ground, found) = tokio::select! {
        read = read => read?,
        signal = stop.next() => return Err(PresyncError::Stopped(signal)),
    };
    let look = Look {
        request,
        environment,
        ground: &ground,
    };
    let preview = look.at(found, log, stop).await?;
    let (lines, digest) = record::encode(&preview)?;
    log.record(&lines, digest);
    log.say("dry run: nothing was written");
    Ok(())
}
