//! What the README states is so: its commands, its transcript, its tables.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/program.rs"]
mod program;
#[path = "support/repositories.rs"]
mod repositories;
#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeSet;
use std::path::Path;

use stagewright::report::Outcome;
use stagewright::settings::{Settings, SettingsOrigin};

const README: &str = include_str!("../README.md");

/// The text below one heading, up to the next one of its level.
fn section(heading: &str) -> &'static str {
    let start = README.find(&format!("\n## {heading}\n")).unwrap();
    let text = &README[start + 1..];
    text.find("\n## ").map_or(text, |end| &text[..end])
}

/// The first cells of the table rows in a text, without their backquotes.
fn first_cells(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---"))
        .map(|line| {
            line.split('|')
                .nth(1)
                .unwrap()
                .trim()
                .trim_matches('`')
                .to_owned()
        })
        .collect()
}

/// The arguments after ` -- ` in each command of the first section that runs the program.
fn commands() -> Vec<Vec<&'static str>> {
    section("Try it")
        .lines()
        .filter_map(|line| line.strip_prefix("    cargo run --release --bin stagewright-plan -- "))
        .map(|arguments| arguments.split(' ').collect())
        .collect()
}

#[test]
fn the_first_command_gives_the_transcript() {
    let text = section("Try it");
    let transcript = text.split("```\n").nth(1).unwrap();
    let folder = tempfile::tempdir().unwrap();

    let run = program::plan(folder.path(), &commands()[0]);

    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let here = folder.path().canonicalize().unwrap();
    let (headings, end) = run.stderr.trim_end().rsplit_once('\n').unwrap();
    let shown = format!("{headings}\n{}{end}\n", run.stdout)
        .replace(&here.display().to_string(), "/tmp/stagewright");
    let mut left = shown.lines().map(comparable);
    for line in transcript.lines().filter(|line| *line != "[…]") {
        let line = comparable(line);
        assert!(
            left.any(|shown| shown == line),
            "not shown, or not in this order: {line}\n{shown}"
        );
    }
}

/// A line without what differs from machine to machine: the program's version and place, and how long it took.
fn comparable(line: &str) -> String {
    if line.starts_with("presync: Terraform ") {
        return "presync: Terraform".to_owned();
    }
    match (line.find(" in "), line.find(" s; nothing was applied")) {
        (Some(from), Some(to)) if line.starts_with("Planned: ") => {
            format!("{}{}", &line[..from], &line[to..])
        }
        _ => line.to_owned(),
    }
}

#[test]
fn every_command_that_the_readme_says_to_try_next_does_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let expected = [
        (0, "(the head of next,"),
        (0, "everything is planned anew"),
        (0, "1 forget"),
        (2, "PlatformDeploy/headlamp/prd"),
        (3, "--fail-on-changes was given"),
    ];
    let commands = &commands()[1..];
    assert_eq!(commands.len(), expected.len());
    for (command, (code, said)) in commands.iter().zip(expected) {
        if command.contains(&"grafana") {
            let sops = stagewright::child::find_program(Path::new("sops"));
            let required = "STAGEWRIGHT_TOOLS_REQUIRED";
            if tools::found_or_left_out("sops", required, sops).is_none() {
                continue;
            }
        }
        let run = program::plan(folder.path(), command);
        assert_eq!(run.code, code, "{command:?}: {}", run.stderr);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert!(all.contains(said), "{command:?}: {all}");
    }
    assert!(folder.path().join("plan.json").exists());
}

/// A state with nothing in it, of a stage that was applied.
const STATE: &str = r#"{"version": 4, "terraform_version": "1.7.0", "serial": 1, "outputs": {}, "resources": [],
"lineage": "6f1d1b6e-0000-4000-8000-000000000002", "check_results": null}"#;

#[test]
fn the_estate_of_the_five_steps_is_planned_with_its_settings() {
    let text = section("Your own estate in five steps");
    let blocks: Vec<&str> = text.split("```").skip(1).step_by(2).collect();
    let [tree, registry, settings] = blocks.as_slice() else {
        panic!("{blocks:?}");
    };
    let folder = tempfile::tempdir().unwrap();
    for repository in tree.split("\n├── ").flat_map(|t| t.split("\n└── ")).skip(1) {
        let mut lines = repository.lines().map(|line| {
            let entry = line.trim_start_matches(['│', ' ', '├', '└', '─']);
            entry.split(' ').next().unwrap()
        });
        let bare = format!("git/{}.git", lines.next().unwrap());
        let files: Vec<(String, &str)> = lines
            .filter(|file| !file.is_empty())
            .map(|file| {
                let content = match file.rsplit('.').next().unwrap() {
                    "tf" => {
                        "variable \"greeting\" {}\noutput \"greeting\" { value = var.greeting }"
                    }
                    "tfvars" => "greeting = \"hello\"",
                    "tfstate" => STATE,
                    _ => registry.strip_prefix("yaml\n").unwrap(),
                };
                let file = file.replace('*', "a").replace("<stage>", "dev");
                (file.replace("<path>", "grafana"), content)
            })
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(f, c)| (f.as_str(), *c)).collect();
        repositories::repository(&folder.path().join(bare), "main", &files);
    }
    let root = "root: https://github.com/example ";
    let settings = settings.strip_prefix("yaml\n").unwrap();
    assert!(settings.contains(root), "{settings}");
    // The same estate in a folder.
    let here = "root: git\n    known_as: https://github.com/example ";
    std::fs::write(
        folder.path().join("stagewright.yaml"),
        settings.replace(root, here),
    )
    .unwrap();
    let command = text
        .lines()
        .find_map(|l| l.strip_prefix("    stagewright-plan "));
    let of_one_app: Vec<&str> = command.unwrap().split(' ').collect();
    let of_many = "--repo PlatformDeploy --app-path grafana --stage dev";
    for command in [of_one_app, of_many.split(' ').collect()] {
        let run = program::plan(folder.path(), &command);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        assert!(
            run.stdout.contains("+ greeting = \"hello\""),
            "{}",
            run.stdout
        );
        assert!(!run.stdout.contains("holds no state"), "{}", run.stdout);
    }
}

#[test]
fn the_command_that_runs_the_tests_is_what_ci_runs() {
    assert!(section("Try it").contains("\n    tests/run\n"));
    let ci = std::fs::read_to_string(".ci/run").unwrap();
    assert!(ci.contains("/../tests/run\""), "{ci}");
}

#[test]
fn the_exit_codes_are_those_of_the_programs() {
    let documented: Vec<(String, String)> = exit_code_rows()
        .iter()
        .map(|cells| (cells[1].to_owned(), cells[2].trim_matches('`').to_owned()))
        .collect();
    let codes = [
        Outcome::Done,
        Outcome::Failed,
        Outcome::Usage,
        Outcome::Refused,
        Outcome::RunFailed,
        Outcome::Moved,
        Outcome::NotConfirmed,
        Outcome::NeverStarted,
        Outcome::LogIncomplete,
        Outcome::Locked,
        Outcome::Later,
        Outcome::Interrupted,
        Outcome::Terminated,
    ]
    .map(|outcome| {
        let word = serde_json::to_value(outcome).unwrap();
        (
            outcome.code().to_string(),
            word.as_str().unwrap().to_owned(),
        )
    });
    assert_eq!(documented, codes);
}

/// The cells of the table of exit codes; the first one of each row is empty.
fn exit_code_rows() -> Vec<Vec<&'static str>> {
    section("Exit codes")
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|cells| cells.get(1).is_some_and(|code| code.parse::<u8>().is_ok()))
        .collect()
}

#[test]
fn the_codes_that_occur_today_are_those_of_the_results_schema() {
    let today: Vec<u64> = exit_code_rows()
        .iter()
        .filter(|cells| cells[4].starts_with("yes"))
        .map(|cells| cells[1].parse().unwrap())
        .collect();
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../schemas/plan-result.v1.schema.json")).unwrap();
    let codes = schema["properties"]["exit_code"]["enum"]
        .as_array()
        .unwrap();
    let codes: Vec<u64> = codes.iter().map(|code| code.as_u64().unwrap()).collect();
    assert_eq!(today, codes);
}

#[test]
fn the_example_of_a_result_is_that_of_the_sandbox() {
    let text = section("The result file");
    let example = text.split("```json\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let (_, command) = text.split_once("by `").unwrap();
    let command: Vec<&str> = command.split('`').next().unwrap().split(' ').collect();
    let folder = tempfile::tempdir().unwrap();

    let run = program::plan(folder.path(), &command);

    assert_eq!(run.code, 0, "{}", run.stderr);
    let here = folder.path().canonicalize().unwrap();
    let result = std::fs::read_to_string(folder.path().join("plan.json")).unwrap();
    let result = result.replace(&here.display().to_string(), "/tmp/stagewright");
    // What differs from machine to machine.
    let comparable = |text: &str| -> Vec<String> {
        let differs = |line: &&str| line.contains("\"seconds\"") || line.contains("\"terraform\"");
        let lines = text.lines().filter(|line| !differs(line));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(comparable(&result), comparable(example));
}

#[test]
fn the_parameters_and_credentials_of_the_destroy_pipeline_are_those_of_its_tables() {
    let pipeline = include_str!("../examples/jenkins/Jenkinsfile.destroy-stage");
    let after = |mark: &str| -> BTreeSet<String> {
        let values = pipeline.split(mark).skip(1);
        values
            .map(|rest| rest.split('\'').next().unwrap().to_owned())
            .collect()
    };
    let cells = first_cells(section("Jenkins"));
    let quoted = cells.iter().flat_map(|cell| cell.split(", "));
    let quoted: BTreeSet<&str> = quoted.map(|name| name.trim_matches('`')).collect();
    let named = after("(name: '")
        .into_iter()
        .chain(after("credentialsId: '"));
    for name in named {
        assert!(quoted.contains(name.as_str()), "{name}: {quoted:?}");
    }
    let is_a_parameter =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    for name in quoted {
        if is_a_parameter(name) || name.starts_with("stagewright-") {
            assert!(pipeline.contains(&format!("'{name}'")), "{name}");
        }
    }
}

#[test]
fn the_settings_table_has_every_key_that_is_read_and_no_other() {
    let documented: BTreeSet<String> = first_cells(section("Settings"))
        .into_iter()
        .filter(|key| key != "key")
        .collect();
    let mut known = BTreeSet::new();
    collect_keys(&[], &mut known);
    assert_eq!(documented, known);
}

/// Finds out which keys are read: a key that none has is refused with the list of those that could stand there. Where
/// such a mapping is no section, the error is another one.
fn collect_keys(section: &[&str], known: &mut BTreeSet<String>) {
    let mut text = "no_such_key: 1".to_owned();
    for key in section.iter().rev() {
        text = format!("{key}: {{{text}}}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stagewright.yaml");
    std::fs::write(&file, format!("{{{text}}}\n")).unwrap();
    let error = Settings::load(&file, SettingsOrigin::Flag)
        .unwrap_err()
        .to_string();
    let Some(keys) = keys_in(&error) else {
        known.insert(section.join("."));
        return;
    };
    for key in keys {
        collect_keys(&[section, &[key.as_str()]].concat(), known);
    }
}

/// The keys that an error about `no_such_key` lists; `None` for another error.
fn keys_in(error: &str) -> Option<Vec<String>> {
    let (_, list) = error.split_once("no_such_key")?;
    let (_, list) = list
        .split_once("expected ")
        .or_else(|| list.split_once("known are "))?;
    let words = list.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let joining = ["", "one", "of", "or", "and", "at", "line", "column"];
    Some(
        words
            .filter(|word| !joining.contains(word) && !word.starts_with(|c: char| c.is_numeric()))
            .map(str::to_owned)
            .collect(),
    )
}

#[test]
fn the_variables_that_terraform_does_not_get_are_all_named() {
    let text = section("presync plan");
    let (_, list) = text.split_once("These do not:").unwrap();
    let list = list.split("### ").next().unwrap();
    let code = include_str!("../src/terraform/run.rs");
    let mut names = 0;
    for constant in code.split("const NOT_FOR_TERRAFORM").skip(1) {
        let constant = constant.split("];").next().unwrap();
        for name in constant.split('"').skip(1).step_by(2) {
            assert!(list.contains(&format!("`{name}`")), "{name}");
            names += 1;
        }
    }
    assert!(names > 10, "{names}");
}

#[test]
fn the_rooms_are_those_of_the_crate() {
    let text = section("Working on it");
    let table = text.split("**The rooms**").nth(1).unwrap();
    let table = table.split("**House rules.**").next().unwrap();
    let documented: BTreeSet<String> = first_cells(table)
        .into_iter()
        .filter(|room| room != "room")
        .collect();
    let rooms: BTreeSet<String> = include_str!("../src/lib.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    assert_eq!(documented, rooms);
}

#[test]
fn every_link_of_the_readme_leads_somewhere() {
    let headings: Vec<String> = README
        .lines()
        .filter_map(|line| line.strip_prefix("## ").or(line.strip_prefix("### ")))
        .map(|heading| heading.to_lowercase().replace(' ', "-"))
        .collect();
    let mut broken = Vec::new();
    for after in README.split("](").skip(1) {
        let target = after.split(')').next().unwrap();
        let found = match target.strip_prefix('#') {
            Some(heading) => headings.iter().any(|known| known == heading),
            None => target.contains("://") || Path::new(target).exists(),
        };
        if !found {
            broken.push(target);
        }
    }
    assert_eq!(broken, Vec::<&str>::new());
}

#[test]
fn the_table_of_checks_has_every_check_with_its_weight() {
    use stagewright::registry::check::CHECKS;
    let text = section("stagewright-registry-check");
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        matches!(cells.get(2), Some(&"error" | &"warning"))
            .then(|| format!("{} {}", cells[1].trim_matches('`'), cells[2]))
    });
    let checks = CHECKS
        .iter()
        .map(|check| format!("{} {}", check.name, check.severity));
    assert_eq!(rows.collect::<Vec<_>>(), checks.collect::<Vec<_>>());
}
