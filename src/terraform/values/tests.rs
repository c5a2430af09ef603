use super::*;

fn read(plan: &str) -> PlanValues {
    PlanValues::read(plan.as_bytes()).unwrap()
}

fn values(plan: &str) -> Values {
    let masking = Masking {
        masked: &str::to_owned,
        longest: 0,
    };
    read(plan).bounded(masking)
}

/// One resource's attributes, a line each.
fn lines(change: &str) -> Vec<String> {
    let plan = format!(
        r#"{{"resource_changes": [{{"address": "a.b", "type": "aws_db_instance", "change": {change}}}]}}"#
    );
    let side = |side: &Side| match side {
        Side::Absent => "-".to_owned(),
        Side::Text(shown) => format!("{:?}", shown.text),
        Side::Json(shown) => shown.text.clone(),
        Side::Hidden => "hidden".to_owned(),
        Side::Unknown => "unknown".to_owned(),
    };
    let values = values(&plan);
    let attributes = values.resources[0].attributes.iter();
    attributes
        .map(|a| {
            let replaces = if a.replaces { " !" } else { "" };
            format!(
                "{}: {} => {}{replaces}",
                a.path,
                side(&a.before),
                side(&a.after)
            )
        })
        .collect()
}

#[test]
fn only_what_differs_is_told_down_to_the_attribute() {
    let change = r#"{"actions": ["update"], "before_sensitive": {}, "after_sensitive": {},
        "before": {"a": 1, "rule": [{"port": 80, "to": "x"}], "tags": {"app.example.com/name": "old", "same": "s"}, "list": ["a", "b"], "none": null},
        "after": {"a": 1, "rule": [{"port": 443, "to": "x"}], "tags": {"app.example.com/name": "new", "same": "s"}, "list": ["b"], "none": null}}"#;
    assert_eq!(
        lines(change),
        [
            "rule[0].port: 80 => 443",
            r#"tags["app.example.com/name"]: "old" => "new""#,
            "list: [\n\"a\",\n\"b\"\n] => [\n\"b\"\n]",
        ]
    );
}

#[test]
fn what_is_known_after_the_apply_alone_and_what_replaces_is_said() {
    let change = r#"{"actions": ["delete", "create"], "before_sensitive": {}, "after_sensitive": {},
        "before": {"size": 1, "id": "i-1", "net": {"ip": "10.0.0.1"}}, "after": {"size": 2}, "after_unknown": {"id": true, "net": true},
        "replace_paths": [["size"]]}"#;
    assert_eq!(
        lines(change),
        [
            r#"id: "i-1" => unknown"#,
            "size: 1 => 2 !",
            r#"net.ip: "10.0.0.1" => unknown"#,
        ]
    );
}

#[test]
fn what_identifies_an_object_comes_first() {
    let change = r#"{"actions": ["delete"], "before_sensitive": {}, "after_sensitive": false,
        "before": {"engine": "postgres", "id": "db-1", "identifier": "invoices"}, "after": null}"#;
    assert_eq!(
        lines(change),
        [
            r#"identifier: "invoices" => -"#,
            r#"id: "db-1" => -"#,
            r#"engine: "postgres" => -"#,
        ]
    );
}

#[test]
fn a_sensitive_value_is_hidden_on_both_sides_wherever_the_mark_stands() {
    for (before, after) in [("true", "false"), ("false", "true"), ("true", "true")] {
        let change = format!(
            r#"{{"actions": ["update"], "before": {{"p": "secret-one", "m": {{"k": "secret-two"}}, "l": ["x", "secret-three"]}},
                "after": {{"p": "secret-four", "m": {{"k": "secret-five"}}, "l": ["x", "secret-six"]}},
                "before_sensitive": {{"p": {before}, "m": {{"k": {before}}}, "l": [false, {before}]}},
                "after_sensitive": {{"p": {after}, "m": {{"k": {after}}}, "l": [false, {after}]}}}}"#
        );
        assert_eq!(
            lines(&change),
            [
                "p: hidden => hidden",
                "m.k: hidden => hidden",
                "l[1]: hidden => hidden"
            ]
        );
    }
}

#[test]
fn marks_that_are_missing_or_of_another_shape_hide_all_that_they_could_mean() {
    let missing = r#"{"actions": ["create"], "before": null, "after": {"p": "secret"}}"#;
    assert_eq!(lines(missing), [": - => hidden"]);
    let odd = r#"{"actions": ["create"], "before": null, "before_sensitive": false, "after": {"p": "secret", "q": ["secret"]},
        "after_sensitive": {"p": {"deeper": true}, "q": 7}}"#;
    assert_eq!(lines(odd), ["p: - => hidden", "q[0]: - => hidden"]);
    let beyond = r#"{"actions": ["create"], "before": null, "before_sensitive": false, "after": {"l": ["a", "b"]},
        "after_sensitive": {"l": [true]}}"#;
    assert_eq!(lines(beyond), ["l[0]: - => hidden", "l[1]: - => hidden"]);
}

#[test]
fn the_texts_of_everything_sensitive_are_known_as_secrets() {
    let plan = r#"{"variables": {"token": {"value": "of-a-variable"}, "plain": {"value": "plain"}},
        "configuration": {"root_module": {"variables": {"token": {"sensitive": true}, "plain": {}}}},
        "resource_drift": [{"address": "a.c", "change": {"actions": ["update"], "before": {"p": "of-a-drift"}, "after": {},
            "before_sensitive": {"p": true}, "after_sensitive": {}}}],
        "resource_changes": [{"address": "a.b", "change": {"actions": ["no-op"], "before": {"p": ["unchanged", 12345678]},
            "after": {"p": ["unchanged", 12345678]}, "before_sensitive": {"p": true}, "after_sensitive": {"p": true}}}],
        "output_changes": {"o": {"actions": ["create"], "before": null, "after": "of-an-output", "before_sensitive": true, "after_sensitive": true}}}"#;
    assert_eq!(
        read(plan).hidden,
        [
            "12345678",
            "of-a-drift",
            "of-a-variable",
            "of-an-output",
            "unchanged"
        ]
    );
}

fn many(count: usize, action: &str, length: usize) -> String {
    let changes: Vec<String> = (0..count)
        .map(|n| {
            let value = "x".repeat(length);
            format!(
                r#"{{"address": "a.{action}{n}", "change": {{"actions": ["{action}"], "before": {{"v": "{value}"}}, "after": {{"v": "new"}},
                "before_sensitive": {{}}, "after_sensitive": {{}}}}}}"#
            )
        })
        .collect();
    changes.join(",")
}

#[test]
fn a_long_value_is_cut_and_says_by_how_much() {
    let plan = format!(r#"{{"resource_changes": [{}]}}"#, many(1, "update", 5_000));
    let values = values(&plan);
    let Side::Text(shown) = &values.resources[0].attributes[0].before else {
        panic!("{values:?}");
    };
    assert_eq!((shown.text.len(), shown.cut), (2_000, 3_000));
}

#[test]
fn at_the_bound_values_are_left_out_and_those_of_what_is_destroyed_are_kept_first() {
    let plan = format!(
        r#"{{"resource_changes": [{},{}]}}"#,
        many(400, "update", 2_000),
        many(100, "delete", 2_000)
    );
    let values = values(&plan);
    assert_eq!(values.resources.len(), 500);
    let kept = |from: usize, to: usize| {
        let of = values.resources[from..to].iter();
        of.filter(|of| !of.attributes.is_empty()).count()
    };
    assert_eq!(kept(400, 500), 100);
    assert_eq!(kept(0, 400) + values.left_out, 400);
    assert!(serde_json::to_vec(&values).unwrap().len() < 700 * 1024);
}

#[test]
fn no_part_of_a_secret_that_crosses_the_cut_is_left() {
    let secret = "0123456789abcdef".repeat(4);
    let masked = |text: &str| text.replace(&secret, "***");
    for before in (1_900..2_100).chain(8_000..8_200) {
        let text = format!("{}{secret}{}", "x".repeat(before), "y".repeat(10_000));
        let plan = format!(
            r#"{{"resource_changes": [{{"address": "a.b", "change": {{"actions": ["delete"], "before": {{"v": "{text}"}}, "after": null,
            "before_sensitive": {{}}, "after_sensitive": false}}}}]}}"#
        );
        let masking = Masking {
            masked: &masked,
            longest: secret.len(),
        };
        let values = read(&plan).bounded(masking);
        let json = serde_json::to_string(&values).unwrap();
        assert!(!json.contains("0123456"), "{before}");
    }
}
