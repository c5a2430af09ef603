//! The reading and the checks of a registry against the real Helm, with the chart of the sandbox's estate.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/corruptions.rs"]
mod corruptions;
#[path = "registry_helm/helm.rs"]
mod helm;
#[path = "registry_helm/peculiar.rs"]
mod peculiar;
#[path = "support/registries.rs"]
mod registries;
#[path = "registry_helm/rendered.rs"]
mod rendered;
#[path = "support/tools.rs"]
mod tools;

use corruptions::Corruption;
use helm::{Helm, Schema, in_two_threads};
use peculiar::Reading;
use stagewright::findings::{At, Finding, Severity};
use stagewright::layout::Layout;
use stagewright::registry::check::{NULL_STAGE, YAML, check};

fn findings(text: &str) -> Vec<Finding> {
    check(text, &Layout::default()).findings
}

fn errors(findings: &[Finding]) -> Vec<&Finding> {
    let is_error = |finding: &&Finding| finding.severity() == Severity::Error;
    findings.iter().filter(is_error).collect()
}

/// What is wrong with how a registry is judged: Helm refuses what has no error, or makes other Applications of what has none.
fn disagreement(helm: &Helm, text: &str) -> Option<String> {
    let found = findings(text);
    if !errors(&found).is_empty() {
        return None;
    }
    let drops_stages = found
        .iter()
        .any(|finding| finding.check.name == NULL_STAGE.name);
    match (
        helm.lint(Schema::Estate, text),
        helm.template(Schema::Published, text),
    ) {
        (Err(_), _) if drops_stages => None,
        (Err(refusal), _) | (_, Err(refusal)) => {
            Some(format!("no error, and Helm refuses it: {refusal}"))
        }
        (Ok(()), Ok(made)) => rendered::difference(text, &made),
    }
}

#[test]
fn helm_finds_of_the_faulty_registries_what_the_table_says_and_what_it_refuses_has_an_error() {
    let Some(helm) = Helm::found() else { return };
    let faults = in_two_threads(registries::FAULTY, |case| {
        let refused = |schema| helm.lint(schema, case.text).is_err();
        let mut faults = Vec::new();
        if refused(Schema::None) != case.helm {
            faults.push(format!("{}: helm lint says otherwise", case.fault));
        }
        // By its own reading of YAML, which lets keys be there twice.
        if case.schema && case.check != "yaml" && !refused(Schema::Published) {
            faults.push(format!(
                "{}: helm lint with the schema finds nothing",
                case.fault
            ));
        }
        faults.extend(disagreement(&helm, case.text).map(|told| format!("{}: {told}", case.fault)));
        faults
    });
    assert_eq!(faults.concat(), Vec::<String>::new());
}

#[test]
fn every_golden_case_is_judged_as_helm_does_and_the_sound_ones_make_the_same_applications() {
    let Some(helm) = Helm::found() else { return };
    let faults = in_two_threads(&registries::golden(), |(case, text)| {
        disagreement(&helm, text).map(|told| format!("{case}: {told}"))
    });
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_is_read_of_peculiar_yaml_is_what_helm_makes_of_it_and_the_rest_is_refused() {
    let Some(helm) = Helm::found() else { return };
    let faults = in_two_threads(peculiar::CASES, |(text, reading)| {
        let is_refused = !errors(&findings(text)).is_empty();
        if is_refused != (*reading == Reading::Refused) {
            return Some(format!(
                "{text}\nis refused: {is_refused}: {:#?}",
                findings(text)
            ));
        }
        disagreement(&helm, text).map(|told| format!("{text}\n{told}"))
    });
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// `STAGEWRIGHT_CORRUPTION_SEED` chooses others.
#[test]
fn a_registry_of_one_wrong_character_has_a_finding_in_its_place_or_means_for_helm_what_it_means_here()
 {
    let Some(helm) = Helm::found() else { return };
    let count = if tools::is_on("STAGEWRIGHT_FULL") {
        300
    } else {
        60
    };
    let seed = std::env::var("STAGEWRIGHT_CORRUPTION_SEED").map_or(9, |seed| seed.parse().unwrap());
    let corruptions = corruptions::corruptions(count, seed);
    let faults = in_two_threads(&corruptions, |corruption| {
        let text = &corruption.text;
        let told = disagreement(&helm, text).or_else(|| misplaced(&helm, corruption));
        told.map(|told| format!("{}: {told}", corruption.what))
    });
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    assert!(faults.is_empty(), "seed {seed}:\n{}", faults.join("\n"));
}

/// What is wrong with the places of the findings: none is in the entry of the wrong character, nor as near to it as Helm's own word. Where
/// Helm has no word for the place, the parser's will do: that below the wrong character from which on the text cannot be read, such as
/// the alias of an anchor whose name it is in.
fn misplaced(helm: &Helm, corruption: &Corruption) -> Option<String> {
    let found = findings(&corruption.text);
    let errors = errors(&found);
    let lines = lines(&errors);
    let nearest = lines
        .iter()
        .map(|line| line.abs_diff(corruption.line))
        .min()?;
    let entry = entry(&corruption.text, corruption.line);
    if nearest <= 1 || lines.iter().any(|line| entry.contains(line)) {
        return None;
    }
    let said = helm.lint(Schema::Estate, &corruption.text).err();
    let is_near = match said.as_ref().and_then(|said| line_in(said)) {
        // It counts some lines from 0 and others from 1.
        Some(line) => nearest <= line.abs_diff(corruption.line) + 1,
        None => {
            let is_below = lines.iter().all(|line| *line >= corruption.line);
            is_below && errors.iter().all(|finding| finding.check.name == YAML.name)
        }
    };
    (!is_near).then(|| {
        let places: Vec<String> = errors
            .iter()
            .map(|f| format!("{} {}", f.at, f.message))
            .collect();
        format!("{places:?} is not where it is; Helm: {said:?}")
    })
}

/// The lines that findings name: their own, and that of a brace which is still open.
fn lines(findings: &[&Finding]) -> Vec<usize> {
    let lines = |finding: &&Finding| {
        let own = match &finding.at {
            At::Line(place) => Some(place.line),
            At::Object(_) => None,
        };
        let open = finding
            .message
            .strip_suffix(" is still open")
            .and_then(|said| {
                let (_, place) = said.rsplit_once(" at ")?;
                place.split(':').next()?.parse().ok()
            });
        [own, open]
    };
    findings.iter().flat_map(lines).flatten().collect()
}

/// The line that Helm's parser names.
fn line_in(said: &str) -> Option<usize> {
    let (_, rest) = said.split_once("yaml: line ")?;
    rest.split(':').next()?.parse().ok()
}

/// The lines of the entry below `apps`, or of the key beside it, that holds this line.
fn entry(text: &str, line: usize) -> std::ops::RangeInclusive<usize> {
    let lines: Vec<&str> = text.split('\n').collect();
    let begins = |at: &usize| {
        let text = lines.get(at - 1).copied().unwrap_or_default();
        let content = text.trim_start();
        text.len() - content.len() <= 2 && !content.is_empty() && !content.starts_with('#')
    };
    let from = (1..=line).rev().find(begins).unwrap_or(1);
    let to = (line + 1..=lines.len()).find(begins).unwrap_or(lines.len());
    from..=to
}
