//! Helm, run on the chart of the sandbox's estate with other values.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use stagewright::child::find_program;

use super::tools;

const CHART: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/fixtures/estate/ArgoCDDeploy/main/releases"
);
const PUBLISHED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/schemas/registry.v1.schema.json"
);

/// What stands beside the values as `values.schema.json`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Nothing.
    None,
    /// What the sandbox's estate has there.
    Estate,
    /// The one that is published for editors.
    Published,
}

pub struct Helm(PathBuf);

impl Helm {
    /// The one on `PATH`. Without one the test is left out, or fails where tools are required.
    pub fn found() -> Option<Helm> {
        let helm = find_program("helm".as_ref());
        tools::found_or_left_out("helm", "STAGEWRIGHT_TOOLS_REQUIRED", helm).map(Helm)
    }

    /// `helm lint` of these values: what it says where it fails.
    pub fn lint(&self, schema: Schema, values: &str) -> Result<(), String> {
        self.run("lint", schema, values).map(drop)
    }

    /// The objects that `helm template` makes of these values.
    pub fn template(&self, schema: Schema, values: &str) -> Result<String, String> {
        self.run("template", schema, values)
    }

    fn run(&self, command: &str, schema: Schema, values: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let chart = folder.path().join("releases");
        std::fs::create_dir_all(chart.join("templates")).unwrap();
        for file in [
            "Chart.yaml",
            "templates/_hook.tpl",
            "templates/applications.yaml",
        ] {
            std::fs::copy(format!("{CHART}/{file}"), chart.join(file)).unwrap();
        }
        let beside = match schema {
            Schema::None => None,
            Schema::Estate => Some(format!("{CHART}/values.schema.json")),
            Schema::Published => Some(PUBLISHED.to_owned()),
        };
        if let Some(beside) = beside {
            std::fs::copy(beside, chart.join("values.schema.json")).unwrap();
        }
        std::fs::write(chart.join("values.yaml"), values).unwrap();
        let output = Command::new(&self.0)
            .arg(command)
            .arg(&chart)
            .env("HOME", folder.path())
            .output()
            .unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        if output.status.success() {
            Ok(told)
        } else {
            Err(told + &String::from_utf8(output.stderr).unwrap())
        }
    }
}

/// What `judge` says of each, in their order, by two threads: most of the time goes into Helm's.
pub fn in_two_threads<T: Sync, R: Send>(items: &[T], judge: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let judged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                {
                    let said = judge(item);
                    judged.lock().unwrap().push((at, said));
                }
            });
        }
    });
    let mut judged = judged.into_inner().unwrap();
    judged.sort_by_key(|(at, _)| *at);
    judged.into_iter().map(|(_, said)| said).collect()
}
