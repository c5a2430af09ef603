use proptest::prelude::*;

use super::*;

fn at(line: usize, column: usize) -> Place {
    Place { line, column }
}

fn text(yaml: &str, key: &str) -> String {
    parse(yaml)
        .unwrap()
        .get(key)
        .unwrap()
        .text()
        .unwrap()
        .to_owned()
}

#[test]
fn places_are_counted_from_one() {
    let tree = parse("a:\n  b: x\n  c: [y, 'z']\n").unwrap();
    let a = tree.get("a").unwrap();
    assert_eq!(a.get("b").unwrap().place(), at(2, 6));
    assert_eq!(a.get("c").unwrap().place(), at(3, 6));
    let Value::Sequence(items) = a.get("c").unwrap().value() else {
        panic!("no list");
    };
    assert_eq!(items[1].place(), at(3, 10));
    assert_eq!(at(12, 5).to_string(), "12:5");
}

#[test]
fn plain_scalars_that_helm_reads_otherwise_are_no_text() {
    for word in [
        "on",
        "Off",
        "YES",
        "no",
        "y",
        "N",
        "true",
        "False",
        "null",
        "Null",
        "~",
        "1e3",
        "1E3",
        "1_000",
        "0123",
        "0x1f",
        "0b1",
        "0o7",
        "1.10",
        ".5",
        "5.",
        "-1",
        "+1",
        "12345678",
        ".iNf",
        "2024-01-01",
        "2024-1-1 10:00:00",
        "2024-01-01T10:00:00Z",
        "1:30",
        "1:30:00.5",
        "=",
        "1e+07",
        "6.02e23",
    ] {
        let tree = parse(&format!("k: {word}\n")).unwrap();
        let error = tree.get("k").unwrap().text().unwrap_err();
        assert!(
            matches!(error, YamlError::Misread { .. }),
            "{word}: {error}"
        );
        assert_eq!(error.place(), at(1, 4));
        assert_eq!(text(&format!("k: '{word}'\n"), "k"), word);
        assert_eq!(text(&format!("k: \"{word}\"\n"), "k"), word);
        assert_eq!(text(&format!("k: !!str {word}\n"), "k"), word);
    }
    assert!(parse("k:\n").unwrap().get("k").unwrap().text().is_err());
    for word in [
        "prd",
        "one",
        "yess",
        "none",
        "1.2.3",
        "v1",
        "0xg",
        "1e",
        "e3",
        "a1",
        "1-2",
        "2024-01",
        "1a",
        "_1",
        ".",
        "..",
        "main",
        "0.0.0.0",
        "12:ab",
        "https://x",
        "-",
        "-x",
    ] {
        if word != "-" {
            assert_eq!(text(&format!("k: {word}\n"), "k"), word);
        }
    }
}

#[test]
fn the_error_shows_the_quoted_form() {
    let tree = parse("k: 0123").unwrap();
    assert_eq!(
        tree.get("k").unwrap().text().unwrap_err().to_string(),
        "Helm reads 0123 without quotes as a number, and a text is wanted; write \"0123\""
    );
}

#[test]
fn a_doubled_key_is_refused_also_when_quoted_otherwise() {
    assert_eq!(
        parse("a: 1\nb: 2\n'a': 3\n").unwrap_err(),
        YamlError::DuplicateKey {
            place: at(3, 1),
            key: "a".to_owned(),
            first: at(1, 1)
        }
    );
}

#[test]
fn a_second_document_is_refused_and_an_end_mark_is_not() {
    assert_eq!(
        parse("a: 1\n---\nb: 2\n").unwrap_err(),
        YamlError::SecondDocument { place: at(2, 1) }
    );
    assert!(parse("a: 1\n...\n").is_ok());
    assert!(parse("---\na: 1\n...\n").is_ok());
    assert!(parse("a: 1\n...\nb: 2\n").is_err());
}

#[test]
fn merges_apply_and_own_keys_win() {
    let yaml = "base: &base {a: one, b: two}\nx:\n  <<: *base\n  b: own\n";
    let tree = parse(yaml).unwrap();
    let x = tree.get("x").unwrap();
    assert_eq!(x.get("a").unwrap().text(), Ok("one"));
    assert_eq!(x.get("b").unwrap().text(), Ok("own"));
    assert!(x.get("<<").is_none());
    let several = "p: &p {a: p}\nq: &q {a: q, b: q}\nx:\n  <<: [*p, *q]\n";
    let x = parse(several).unwrap();
    let x = x.get("x").unwrap();
    assert_eq!(x.get("a").unwrap().text(), Ok("p"));
    assert_eq!(x.get("b").unwrap().text(), Ok("q"));
}

#[test]
fn a_merge_below_a_key_that_it_sets_is_refused_since_helm_lets_it_win() {
    assert_eq!(
        parse("base: &base {a: one}\nx:\n  a: own\n  <<: *base\n").unwrap_err(),
        YamlError::MergeAfterKey {
            place: at(4, 3),
            key: "a".to_owned(),
            own: at(3, 3)
        }
    );
    assert!(parse("x: {<<: text}").is_err());
    assert!(parse("x: {<<: [[a]]}").is_err());
    assert_eq!(text("'<<': a", "<<"), "a");
}

#[test]
fn an_anchor_named_twice_means_the_latest() {
    let tree = parse("a: &s one\nb: *s\nc: &s two\nd: *s\n").unwrap();
    assert_eq!(tree.get("b").unwrap().text(), Ok("one"));
    assert_eq!(tree.get("d").unwrap().text(), Ok("two"));
}

#[test]
fn an_alias_without_anchor_or_inside_itself_is_refused() {
    assert!(matches!(
        parse("a: *s").unwrap_err(),
        YamlError::Syntax { .. }
    ));
    assert_eq!(
        parse("a: &s [*s]").unwrap_err(),
        YamlError::AliasInItself { place: at(1, 8) }
    );
}

#[test]
fn line_ends_of_windows_and_a_byte_order_mark_change_nothing() {
    assert_eq!(
        parse("a:\r\n  b: x\r\n").unwrap(),
        parse("a:\n  b: x\n").unwrap()
    );
    assert_eq!(parse("\u{feff}a: x").unwrap(), parse("a: x").unwrap());
}

#[test]
fn what_parsers_read_differently_is_refused() {
    assert_eq!(
        parse("a: x\nb: y\u{85}z").unwrap_err(),
        YamlError::Character {
            place: at(2, 5),
            character: "\u{85}".to_owned()
        }
    );
    assert!(parse("a: x\u{2028}").is_err());
    assert!(parse("a: \0").is_err());
    assert_eq!(
        parse("# c\n%YAML 1.1\n---\na: 1\n").unwrap_err(),
        YamlError::Directive { place: at(2, 1) }
    );
    assert_eq!(
        parse("a: !!int 1").unwrap_err(),
        YamlError::Tag { place: at(1, 4) }
    );
    assert!(parse("a: !x {}").is_err());
    assert!(parse("a:\n\t- b\n\tc: d").is_err());
    assert!(parse("[a, b]: c").is_err());
    assert!(parse("a: b: c").is_err());
    assert!(parse("a: [").is_err());
}

#[test]
fn what_is_still_open_where_the_parser_gives_up_is_told() {
    for (yaml, ends) in [
        (
            "a: {\n  b: c\nd:\n- e\n",
            "; the \"{\" at 1:4 is still open",
        ),
        (
            "a: {b: [c,\n  d: e\n  : f}\n",
            "; the \"[\" at 1:8 is still open",
        ),
        ("a: {b: c}\nd: [e]\n - f\n", "did not find expected key"),
    ] {
        let said = parse(yaml).unwrap_err().to_string();
        assert!(said.ends_with(ends), "{yaml:?}: {said}");
    }
}

#[test]
fn what_yaml_1_2_allows_and_helm_does_not_read_is_refused_with_its_place() {
    for (yaml, place, what) in [
        ("a: &b.c 1\n", at(1, 4), "an anchor's name"),
        ("a: &b.c 1\nd: *b\n", at(1, 4), "an anchor's name"),
        ("a: &b {x: &é 1}\n", at(1, 11), "an anchor's name"),
        ("a: &b: 1\n", at(1, 4), "an anchor's name"),
        ("a: !!str &ü c\n", at(1, 10), "an anchor's name"),
        ("~: 1\n", at(1, 1), "a key that is null"),
        ("a:\n  : 1\n", at(2, 3), "a key that is null"),
        ("{a: 1, null: 2}\n", at(1, 8), "a key that is null"),
        ("a: [1, -.INF]\n", at(1, 8), "a number that is not finite"),
        ("a: .nan\n", at(1, 4), "a number that is not finite"),
        ("a: b\n\t\nc: d\n", at(2, 1), "a tab"),
        ("a: {}\n \t# c\n", at(2, 2), "a tab"),
        ("a: {}\r\n\t\r\n", at(2, 1), "a tab"),
        ("a:\n-\tb\n", at(2, 2), "a tab"),
        ("a: {}\n\t", at(2, 1), "a tab"),
        ("? a\n:  \t{}\n", at(2, 4), "a tab"),
        ("a: \"b\\\\\\/\"\n", at(1, 8), "the escape \\/"),
        (
            "a: {b: ?c}\n",
            at(1, 8),
            "a text without quotes that begins with ?",
        ),
        (
            "a: [:8080]\n",
            at(1, 5),
            "a text without quotes that begins with ?",
        ),
        (
            "a: {b: |c}\n",
            at(1, 8),
            "a text without quotes that begins with |",
        ),
        (
            "a: {b\n  : c}\n",
            at(1, 5),
            "a key that does not stand on one line",
        ),
        (
            "a: {b\n  c: d}\n",
            at(1, 5),
            "a key that does not stand on one line",
        ),
    ] {
        let error = parse(yaml).unwrap_err();
        let said = error.to_string();
        assert!(
            said.starts_with(&format!("Helm does not read {what}")),
            "{yaml:?}: {said}"
        );
        assert_eq!(error.place(), place, "{yaml:?}");
    }
    let list = parse("a: &a [{b: c}]\nd:\n  <<: *a\n").unwrap_err();
    assert!(
        matches!(list, YamlError::MergeOfOther { place, .. } if place == at(3, 7)),
        "{list}"
    );
}

#[test]
fn what_looks_like_it_and_helm_reads_is_read() {
    for yaml in [
        "a: &b-c_1 d\ne: *b-c_1\n",
        "a: 'b & *c.d'\ne: f&g.h\n# &i.j\n",
        "'~': 1\n\"\": 2\n",
        "a: '.inf'\n.inf: b\nc: .infinite\n",
        "a: b\t# c\nd: {}\t\n",
        "a: {\n\t\n  b: c}\n",
        "a: |\n  b\n\n  \tc\n\nd: e\n",
        "a: |-2 # c\n    b\n\n  c\n",
        "a: 'b\n\n  c'\nd: &e |\n  f\n",
        "a: \"b\\\\/c\"\nd: 'e\\/'\n",
        "a: :8080\nb: ?c\n?d: e\n",
        "a: {? b\n  : c, d: 'e\n  f', \"g\":h}\n",
        "a: {b: {c: d\n  }, e: [f,\n  g], h: i}\n",
        "- - a\n  - b\n- c: d\n",
    ] {
        let read = parse(yaml);
        assert!(read.is_ok(), "{yaml:?}: {read:?}");
    }
}

#[test]
fn bytes_that_are_no_utf8_are_refused_with_their_place() {
    assert_eq!(
        utf8(b"a: b\nc: \xff").unwrap_err(),
        YamlError::NotUtf8 {
            place: at(2, 4),
            hint: ""
        }
    );
    assert_eq!(
        utf8(b"\xff\xfea\0").unwrap_err().to_string(),
        "the file is not UTF-8 text but UTF-16; save it as UTF-8"
    );
}

#[test]
fn an_empty_text_is_null() {
    for yaml in ["", "\n", "# only a comment\n", "---\n", "~", "null"] {
        assert!(parse(yaml).unwrap().is_null(), "{yaml:?}");
    }
}

#[test]
fn depth_is_bounded_also_through_aliases() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(parse(&nested(64)).is_ok());
    assert!(matches!(
        parse(&nested(65)).unwrap_err(),
        YamlError::TooDeep { .. }
    ));
    assert!(parse(&"[".repeat(100_000)).is_err());
    assert!(parse(&"{a: ".repeat(100_000)).is_err());
    assert!(parse(&"- ".repeat(100_000)).is_err());
    assert!(parse(&"? ".repeat(100_000)).is_err());
    let mut climbing = "a0: &a0 [x]\n".to_owned();
    for n in 1..80 {
        climbing.push_str(&format!("a{n}: &a{n} [*a{}]\n", n - 1));
    }
    assert!(matches!(
        parse(&climbing).unwrap_err(),
        YamlError::TooDeep { .. }
    ));
}

#[test]
fn a_document_that_explodes_through_its_aliases_is_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..10 {
        let before = format!("*a{}", n - 1);
        bomb.push_str(&format!(
            "a{n}: &a{n} [{}]\n",
            [before.as_str(); 10].join(", ")
        ));
    }
    assert!(matches!(
        parse(&bomb).unwrap_err(),
        YamlError::TooLarge { .. }
    ));
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1_000_000),
        vec!["*a"; 1000].join(", ")
    );
    assert!(matches!(
        parse(&long).unwrap_err(),
        YamlError::TooLarge { .. }
    ));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        drop(parse(&text));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(text) = utf8(&bytes) {
            drop(parse(text));
        }
    }

    #[test]
    fn nothing_like_yaml_makes_it_panic(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "a", "b", ": ", ":", "\n", "\n  ", "\n    ", "- ", "[", "]", "{", "}", ", ", "&a ", "*a", "<<: ", "? ", "|\n",
                ">-\n", "'", "\"", "\\", "# c", "!!str ", "!x ", "%", "---\n", "...\n", "\t", "\r\n", "\u{feff}", "~", "1e3", "@", "`",
            ]),
            0..40,
        )
    ) {
        if let Ok(node) = parse(&pieces.concat()) {
            drop(node.text());
        }
    }
}
