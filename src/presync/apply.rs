//! `presync apply`: what Argo CD's PreSync hook runs. The plan is shown, and that very plan is applied, under the state's
//! lock.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::names::Namespace;
use crate::protect;
use crate::stop::Stop;
use crate::terraform::protected;
use crate::terraform::root::Root;
use crate::terraform::{GRACE, Terraform, Workdir};
use crate::transport::request::StageRequest;

use super::PresyncError;
use super::environment::Environment;
use super::held::Held;
use super::log::Log;
use super::prepare::{self, Prepared};
use super::provenance::provenance;
use super::source::{ConfigFolder, Source};
use super::volumes;

/// How long an apply may take; a hook's own deadline is usually shorter.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Applies the stage at the commit, and writes the log.
pub async fn run(
    request: &StageRequest,
    namespace: &Namespace,
    environment: &Environment,
    log: &mut Log,
    stop: &mut Stop,
) -> Result<(), PresyncError> {
    let recipients = environment.recipients()?;
    let read = async {
        let mut prepared = prepare::prepare(
            request,
            ConfigFolder::Required,
            environment,
            recipients,
            log,
        )
        .await?;
        prepare::say_variables(&prepared.source, log);
        // Before anything is changed: what is applied must be kept, too.
        prepared.store.check_seal(&prepared.key).await?;
        Ok::<_, PresyncError>(prepared)
    };
    let Prepared {
        scratch,
        terraform,
        source,
        root,
        key,
        store,
        account,
        cluster,
    } = tokio::select! {
        read = read => read?,
        signal = stop.next() => return Err(PresyncError::Stopped(signal)),
    };
    let provenance = provenance(Some(request.revision.clone()));
    // Not given up half-way: a lock that was taken would stay.
    let mut held = Held::take(store, key, "apply", provenance, log).await?;
    let run = UnderLock {
        request,
        namespace,
        environment,
        terraform,
        source,
        root,
        cluster,
        plan: scratch.path().join("plan"),
    };
    let applied = run.apply(&mut held, log, stop).await;
    let patience = environment.save_patience;
    let (count, serial) = held.conclude(applied, patience, log, stop).await?;
    tokio::select! {
        reattached = volumes::reattach(namespace, &account, log) => reattached?,
        signal = stop.next() => return Err(PresyncError::Stopped(signal)),
    }
    match serial {
        Some(serial) => log.say(format_args!(
            "applied {count} change(s), the state is saved at serial {serial}"
        )),
        None => log.say(format_args!(
            "applied {count} change(s), the state is as it was"
        )),
    }
    Ok(())
}

/// What is done while the state is locked.
struct UnderLock<'a> {
    request: &'a StageRequest,
    namespace: &'a Namespace,
    environment: &'a Environment,
    terraform: Terraform,
    source: Source,
    root: Root,
    /// What the providers get to reach the cluster.
    cluster: Vec<(String, OsString)>,
    /// The file of the plan.
    plan: PathBuf,
}

impl UnderLock<'_> {
    /// Plans and applies that plan. The number of changes.
    async fn apply(
        &self,
        held: &mut Held,
        log: &mut Log,
        stop: &mut Stop,
    ) -> Result<usize, PresyncError> {
        let UnderLock {
            request,
            namespace,
            environment,
            terraform,
            source,
            root,
            cluster,
            plan,
        } = self;
        let key = held.key().clone();
        prepare::say_where(environment, &key, log);
        let state = tokio::select! {
            state = held.read() => state?,
            signal = stop.next() => return Err(PresyncError::Stopped(signal)),
        };
        prepare::head_of(state.as_deref(), &key, terraform, log)?;
        let backend = held.serve().await?;
        log.mask(vec![backend.password().to_owned()]);
        let variables = [backend.variables(), cluster.clone()].concat();
        let workdir = prepare::workdir(
            source,
            root,
            &request.stage,
            Some(namespace),
            variables,
            log,
        )?;
        prepare::init(terraform, &workdir, root, log, stop).await?;
        held.say_lines(log);
        log.say(format_args!(
            "planning against {key}: what is planned is then applied"
        ));
        let mut changes =
            prepare::plan_to_file(terraform, &workdir, &source.tfvars, plan, log, stop).await?;
        held.say_lines(log);
        let stopped = protected::judge(&mut changes, &environment.protect, &source.allowed);
        prepare::say_changes(&changes, log);
        protect::Refused::unless_none(stopped)?;
        let applied = apply(terraform, &workdir, plan, log, stop).await;
        held.say_lines(log);
        held.take_errored(&workdir.folder).await;
        applied?;
        Ok(changes.resources.len())
    }
}

/// Applies the plan in a file.
pub async fn apply(
    terraform: &Terraform,
    workdir: &Workdir,
    plan: &Path,
    log: &mut Log,
    stop: &mut Stop,
) -> Result<(), PresyncError> {
    let mut arguments: Vec<OsString> = ["apply", "-input=false", "-no-color"]
        .map(OsString::from)
        .into();
    arguments.push(plan.into());
    let applied = terraform
        .run(workdir, &arguments, LONGEST, GRACE, stop, |piece| {
            log.child(piece);
        })
        .await;
    log.end_child();
    Ok(applied?)
}
