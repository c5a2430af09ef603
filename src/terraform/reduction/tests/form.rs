//! What the files look like: comments, heredocs, strings, depth, and what is no file of Terraform's at all.

use super::*;

fn bytes_refused(bytes: &[u8]) -> String {
    let files = [("main.tf".to_owned(), bytes.to_vec())].into();
    Reduction::of(&files, "t", Flavour::Terraform, None)
        .unwrap_err()
        .to_string()
}

/// A kept block, a dropped one around `inside`, and a kept one: the two must be found.
fn between(inside: &str) {
    let text = format!(
        "provider \"first\" {{\n  x = 1\n}}\nresource \"a\" \"b\" {{\n{inside}\n}}\nvariable \"last\" {{\n}}\n"
    );
    assert_eq!(
        left(&text),
        "provider \"first\" {\n  x = 1\n}\nvariable \"last\" {\n}",
        "{inside}"
    );
    // And kept whole where it stands in a kept block.
    let text = format!("provider \"a\" {{\n{inside}\n}}\nresource \"a\" \"b\" {{}}\n");
    assert_eq!(
        whole(&text),
        format!("provider \"a\" {{\n{inside}\n}}\n\n"),
        "{inside}"
    );
}

#[test]
fn a_heredoc_ends_at_a_line_with_its_marker_alone() {
    between("  x = <<EO\nEOF\nxEO\nEO2\n EO x\nEO }\n}\n# \"\nEO");
    between("  x = <<E\nE is\nE\n  y = 1");
    between("  x = <<E\n/*\nE # is\n*/\n}\nresource \"c\" \"d\" {\nE");
    between("  x = <<-X\n\t\ta\n\t\tX \n");
    between("  x = <<-X\r\n\t\ta\r\n\tX\r\n");
    between("  x = <<É\n\"\nÉ");
    between("  x = [<<A\n}\nA\n, <<B\n{\nB\n]");
}

#[test]
fn templates_in_heredocs_and_strings_may_hold_all_that_an_expression_holds() {
    between(
        "  x = <<E\n${f(\"}\", {\n a = 1 })}\n${\nE\n}\n$${ %%{ $ % $$ }\n%{ if true ~}\n  a\n%{~ endif }\nE",
    );
    between(
        "  x = \"a${\"b${\"}\"}\"}$\"\n  y = \"$${\"\n  z = \"%%{\"\n  w = \"\\\"{\"\n  v = \"$$\"",
    );
    between("  x = \"${<<E\n}\nE\n}\"");
    between("  x = <<A\n${<<B\nA\nB\n}\nA");
    between("  x = \"${~ f({ a = 1 }) ~}\"");
}

#[test]
fn comments_hold_braces_quotes_and_marks_of_other_comments() {
    between("  # } \"\n  a = 1//x }\n  b = 1 # {\n  /* } // */\n  // /*\n  # <<X");
    between("  a = (1 + # x )\n 2)\n  c = [ # for x in y\n  ]");
    between("  /* x = <<X\n  } */\n");
    let text = "/* a = <<X\n} */\n# <<X\n/* // */\nprovider \"x\" {\n}\n// \"\n";
    assert_eq!(whole(text), text);
}

#[test]
fn what_nests_forty_levels_deep_is_read_and_what_never_ends_is_refused() {
    let deep = format!(
        "variable \"x\" {{\n  type = {}string{}\n}}\n",
        "object({a=".repeat(40),
        "})".repeat(40)
    );
    assert_eq!(whole(&deep), deep);
    for bracket in ["[", "(", "{", "\"${", "x {\n"] {
        let told = refused(&[("main.tf", &format!("x {{\na = {}", bracket.repeat(100_000)))]);
        assert!(told.contains("(it nests deeper than 256 levels)"), "{told}");
    }
}

#[test]
fn a_long_file_takes_time_by_its_length_alone() {
    let mut text = String::from("provider \"p\" {\n  x = [\n");
    text.push_str(&"    \"${local.a}\", # }\n".repeat(50_000));
    text.push_str("  ]\n}\nlocals {\n  a = <<E\n");
    text.push_str(&"$ E x ${var.b}\n".repeat(50_000));
    text.push_str("E\n}\n");
    assert_eq!(whole(&text), text);
}

#[test]
fn what_cannot_be_read_is_refused_with_file_and_line() {
    for (text, line, why) in [
        (
            "variable \"a\" {}\nx = 1\n",
            2,
            "an attribute stands outside of every block",
        ),
        ("a = \n", 1, "an attribute has no value"),
        ("locals {\n  a =\n}\n", 2, "an attribute has no value"),
        ("locals {\n", 1, "a bracket is not closed"),
        ("\n}\n", 2, "a bracket is closed that is not open"),
        (
            "locals {\n  a = [}\n",
            2,
            "a bracket is closed that is not open",
        ),
        (
            "locals {\n  a = \"b\n}\n",
            2,
            "a string does not end on its line",
        ),
        (
            "locals {\n  a = \"b\\\n\"\n}\n",
            2,
            "a string does not end on its line",
        ),
        (
            "locals {\n  a = \"b",
            2,
            "a string does not end on its line",
        ),
        (
            "locals {\n  a = \"${b",
            2,
            "a template in a string is not closed",
        ),
        (
            "locals {\n  a = <<E\nE",
            2,
            "a heredoc is not closed by a line with its marker alone",
        ),
        ("locals {\n  a = << E\nE\n}\n", 2, "<< begins no heredoc"),
        ("# a\n/* b\n", 2, "a comment is not closed"),
        (
            "# a\nlocals\n",
            2,
            "neither a block nor an attribute begins here",
        ),
        (
            "# a\n\"locals\" {}\n",
            2,
            "neither a block nor an attribute begins here",
        ),
        (
            "# a\nlocals {} variable \"b\" {}\n",
            2,
            "a new line is missing here",
        ),
        ("a \"${b}\" {}\n", 1, "a block's label is not plain text"),
        ("locals {\n  a = 1 ~} 2\n}\n", 2, "~} closes no template"),
        (
            "# a\rb\nc\rd {}\n",
            2,
            "a character stands here that only a string or a comment may hold",
        ),
        (
            "a\u{a0}{}\n",
            1,
            "a character stands here that only a string or a comment may hold",
        ),
    ] {
        assert_eq!(
            refused(&[("main.tf", text)]),
            format!(
                "the root cannot be reduced to what a destroy keeps of it, since not all of it can be read: \
                 app/terraform/main.tf:{line} ({why}); write that in Terraform's own syntax, in UTF-8"
            ),
            "{text}"
        );
    }
}

#[test]
fn odd_and_unfinished_text_is_an_error_or_left_to_terraform() {
    for text in [
        "locals {\n  a =",
        "a =",
        "a",
        "a \"",
        "a \"b\"",
        "a {",
        "<<",
        "<<E",
        "<<E\n",
        "$",
        "\"$",
        "\"$${",
        "a = \"\\",
        "/",
        "/*/",
        "~}",
        "\u{feff}",
        "\u{feff}\u{feff}",
        "locals { { = 1 } }",
        "locals {\n  a = { = 1, , b }\n}",
        "provider {}",
        "resource \"a\" {}\n",
        "data {}\nmodule {}\nvariable {}\n",
    ] {
        let reduced = reduce_as(&[("main.tf", text)], Flavour::Terraform, None);
        if let Err(error) = reduced {
            assert!(
                error.to_string().contains("app/terraform/main.tf:"),
                "{text}: {error}"
            );
        }
    }
}

#[test]
fn what_is_not_utf_8_is_refused_with_its_line() {
    assert!(bytes_refused(b"# caf\xe9\n").contains("t/main.tf:1 (not UTF-8)"));
    assert!(bytes_refused(b"a {\n}\n# caf\xe9\n").contains("t/main.tf:3 (not UTF-8)"));
    let utf_16: Vec<u8> = "\u{feff}provider \"x\" {}\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(bytes_refused(&utf_16).contains("t/main.tf:1 (not UTF-8)"));
    // Without a mark, ASCII in UTF-16 is UTF-8 all the same.
    assert!(bytes_refused(b"a\0 \0{\0}\0\n\0").contains("t/main.tf:1 (a character stands"));
}

#[test]
fn every_file_in_json_is_refused_and_named() {
    let json = r#"{"//": "x", "provider": {"aws": [{"region": "a"}, {"//": "y", "alias": "b"}]}}"#;
    let told = refused(&[("main.tf", ""), ("a.tf.json", json), ("z.tf.json", "{}")]);
    assert!(
        told.contains(
            ": app/terraform/a.tf.json:1 (Terraform's JSON syntax), app/terraform/z.tf.json:1 (Terr"
        ),
        "{told}"
    );
    let files = [
        ("a.tofu", ""),
        ("a.tofu.json", "{}"),
        ("b.tf.json", "{}"),
        ("b.tofu.json", "{}"),
    ];
    let told = reduce_as(&files, Flavour::OpenTofu, None)
        .unwrap_err()
        .to_string();
    assert!(
        told.contains("a.tofu.json:1 ") && told.contains("b.tofu.json:1 "),
        "{told}"
    );
    assert!(!told.contains("b.tf.json"), "{told}");
    assert!(reduce_as(&[("a.tofu.json", "{}")], Flavour::Terraform, None).is_ok());
}
