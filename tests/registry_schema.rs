//! `schemas/registry.v1.schema.json`, which editors use, against the checks: what it refuses they refuse, and the reverse as far as a
//! schema can tell.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[expect(dead_code, reason = "the places are for the comparison with Helm")]
#[path = "support/corruptions.rs"]
mod corruptions;
#[path = "support/registries.rs"]
mod registries;

use serde::Deserialize as _;
use serde_json::Value;
use stagewright::findings::{Finding, Group};
use stagewright::layout::Layout;
use stagewright::registry::check::{CHECKS, ENTRY, SHAPE, YAML, check};

const SCHEMA: &str = include_str!("../schemas/registry.v1.schema.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// Whether an editor says something: it reads YAML 1.2, document by document, and asks the schema.
fn refused(validator: &jsonschema::Validator, text: &str) -> bool {
    serde_yaml::Deserializer::from_str(text).any(|document| match merged(document) {
        Some(value) => !validator.is_valid(&value),
        None => true,
    })
}

/// A document as JSON, its merge keys applied; nothing for what is no YAML.
fn merged(document: serde_yaml::Deserializer<'_>) -> Option<Value> {
    let mut value = serde_yaml::Value::deserialize(document).ok()?;
    value.apply_merge().ok()?;
    serde_json::to_value(value).ok()
}

fn findings(text: &str) -> Vec<Finding> {
    check(text, &Layout::default()).findings
}

/// The findings by which a registry is no registry.
fn of_the_shape(findings: &[Finding]) -> Vec<&Finding> {
    let checks = [YAML.name, SHAPE.name, ENTRY.name];
    let of_these = |finding: &&Finding| checks.contains(&finding.check.name);
    findings.iter().filter(of_these).collect()
}

/// Whether a schema can tell: it sees neither how the text is written nor what YAML 1.1 would read.
fn tellable(finding: &Finding) -> bool {
    let unseen = ["without quotes", "followed by two digits", "encoded"];
    finding.check.name != YAML.name && !unseen.iter().any(|word| finding.message.contains(word))
}

#[test]
fn a_faulty_registry_is_refused_by_the_schema_exactly_where_the_table_says_so() {
    let validator = jsonschema::draft7::new(&schema()).unwrap();
    for case in registries::FAULTY {
        assert_eq!(
            refused(&validator, case.text),
            case.schema,
            "{}",
            case.fault
        );
        let found = findings(case.text);
        let finds = |finding: &Finding| finding.check.name == case.check;
        assert!(found.iter().any(finds), "{}: {found:#?}", case.fault);
    }
}

#[test]
fn the_readme_says_of_each_fault_who_finds_it() {
    let readme = include_str!("../README.md");
    let (_, table) = readme.split_once("| fault | `helm lint` |").unwrap();
    let rows: Vec<&str> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let word = |finds| if finds { "finds it" } else { "–" };
    let expected = registries::FAULTY.iter().map(|case| {
        format!(
            "| {} | {} | {} | `{}` |",
            case.fault,
            word(case.helm),
            word(case.schema),
            case.check
        )
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
}

#[test]
fn every_check_of_the_file_has_a_faulty_registry_and_a_golden_case_for_and_against_it() {
    let golden = registries::golden();
    let of_the_file = CHECKS
        .into_iter()
        .filter(|check| check.group == Group::File);
    for check in of_the_file {
        assert!(
            registries::FAULTY
                .iter()
                .any(|case| case.check == check.name),
            "{}",
            check.name
        );
        let name = check.name.replace('-', "_");
        // Cases that a check finds, and that come near to it.
        for (word, wanted) in [("finds", true), ("passes", false)] {
            let prefix = format!("{name}_{word}_");
            let (_, text) = golden
                .iter()
                .find(|(case, _)| case.starts_with(&prefix))
                .unwrap();
            let found = findings(text);
            let finds = found.iter().any(|finding| finding.check.name == check.name);
            assert_eq!(finds, wanted, "{prefix}: {found:#?}");
        }
    }
}

#[test]
fn the_schema_refuses_of_the_golden_cases_what_the_checks_of_the_shape_do() {
    let validator = jsonschema::draft7::new(&schema()).unwrap();
    let golden = registries::golden();
    assert!(golden.len() > 20);
    for (case, text) in golden {
        let found = findings(&text);
        let of_the_shape = of_the_shape(&found);
        let by_schema = refused(&validator, &text);
        assert!(
            !by_schema || !of_the_shape.is_empty(),
            "{case}: the checks find nothing: {found:#?}"
        );
        let tellable = of_the_shape.into_iter().any(tellable);
        assert!(
            by_schema || !tellable,
            "{case}: the schema finds nothing: {found:#?}"
        );
    }
}

#[test]
fn the_sandboxs_registry_fits_the_schema() {
    let validator = jsonschema::draft7::new(&schema()).unwrap();
    let text = include_str!("../fixtures/estate/ArgoCDDeploy/main/releases/values.yaml");
    assert!(!refused(&validator, text));
    assert!(!refused(&validator, corruptions::SOUND));
}

#[test]
fn one_wrong_character_is_refused_by_the_schema_only_where_the_checks_refuse_it_and_the_reverse() {
    let validator = jsonschema::draft7::new(&schema()).unwrap();
    let mut told = [0; 2];
    let mut faults = Vec::new();
    for corruption in corruptions::corruptions(6_000, 1) {
        let found = findings(&corruption.text);
        let by_checks = of_the_shape(&found);
        let by_schema = refused(&validator, &corruption.text);
        let what = &corruption.what;
        if by_schema && by_checks.is_empty() {
            faults.push(format!("{what}: the checks find nothing"));
        }
        if let Some(finding) = by_checks
            .into_iter()
            .find(|finding| tellable(finding))
            .filter(|_| !by_schema)
        {
            faults.push(format!(
                "{what}: the schema does not find: {}",
                finding.message
            ));
        }
        told[usize::from(by_schema)] += 1;
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(told.iter().all(|count| *count > 500), "{told:?}");
}

#[test]
fn every_key_has_a_description_for_whoever_hovers_over_it() {
    let schema = schema();
    let mut keys = 0;
    let mut open = vec![&schema];
    while let Some(value) = open.pop() {
        // The conditions describe no key once more.
        if let Some(properties) = value.get("properties").and_then(Value::as_object)
            && value.get("type").is_some()
        {
            for (key, property) in properties {
                let text = match property.get("$ref") {
                    Some(_) => None,
                    None => property.get("description").and_then(Value::as_str),
                };
                assert!(text.is_some_and(|text| text.len() > 20), "{key}");
                keys += 1;
            }
        }
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    assert_eq!(keys, 11);
}
