//! `presync plan`: what the stage's hook would apply, without applying it.

use crate::names::Namespace;
use crate::state_backend::http::{Backend, Serves};
use crate::stop::Stop;
use crate::terraform::protected;
use crate::transport::record::{self, PlanRecord, StatePosition, StateSeen};
use crate::transport::request::StageRequest;

use super::PresyncError;
use super::environment::Environment;
use super::log::Log;
use super::prepare::{self, Prepared};
use super::source::ConfigFolder;

/// Plans and writes the log. Changes nothing anywhere.
pub async fn run(
    request: &StageRequest,
    namespace: &Namespace,
    environment: &Environment,
    log: &mut Log,
    stop: &mut Stop,
) -> Result<(), PresyncError> {
    let read = async {
        let mut prepared =
            prepare::prepare(request, ConfigFolder::Required, environment, None, log).await?;
        let Prepared {
            store,
            key,
            terraform,
            source,
            ..
        } = &mut prepared;
        prepare::say_variables(source, log);
        prepare::say_where(environment, key, log);
        let state = store.read(key).await?.map(|stored| stored.state);
        let head = prepare::head_of(state.as_deref(), key, terraform, log)?;
        Ok::<_, PresyncError>((prepared, state, head))
    };
    let (prepared, state, head) = tokio::select! {
        read = read => read?,
        signal = stop.next() => return Err(PresyncError::Stopped(signal)),
    };
    let Prepared {
        scratch,
        terraform,
        source,
        root,
        key,
        cluster,
        ..
    } = prepared;
    let backend = Backend::start(Serves::ReadOnly(state.map(Into::into))).await?;
    log.mask(vec![backend.password().to_owned()]);
    let workdir = prepare::workdir(
        &source,
        &root,
        &request.stage,
        Some(namespace),
        [backend.variables(), cluster].concat(),
        log,
    )?;

    prepare::init(&terraform, &workdir, &root, log, stop).await?;
    log.say(format_args!("planning against {key}: nothing is applied"));
    let file = scratch.path().join("plan");
    let (mut changes, values) =
        prepare::plan_with_values(&terraform, &workdir, &source.tfvars, &file, log, stop).await?;
    // A plan says what an apply would refuse, and is none the worse for it.
    protected::judge(&mut changes, &environment.protect, &source.allowed);
    prepare::say_changes(&changes, log);
    let record = PlanRecord {
        version: 1,
        revision: request.revision.clone(),
        state: StateSeen {
            key,
            position: head.map(|head| StatePosition {
                lineage: head.lineage,
                serial: head.serial,
            }),
        },
        terraform: prepare::name_of(&terraform),
        changes,
        values,
    };
    let (lines, digest) = record::encode(&record)?;
    log.record(&lines, digest);
    log.say("plan only: nothing was applied and no volume was reattached");
    Ok(())
}
