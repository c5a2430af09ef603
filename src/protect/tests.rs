use super::*;

fn protection(patterns: &[&str]) -> Protection {
    let patterns: Result<Vec<Pattern>, _> = patterns.iter().map(|p| p.parse()).collect();
    Protection {
        patterns: patterns.unwrap(),
    }
}

fn protects(pattern: &str, address: &str) -> bool {
    protection(&[pattern]).over(address).is_some()
}

#[test]
fn a_type_is_protected_in_every_module_and_under_every_key() {
    for address in [
        "aws_db_instance.main",
        "aws_db_instance.main[0]",
        "module.db.aws_db_instance.main",
        "module.a[\"module.x.data.y\"].module.b[2].aws_db_instance.main[\"k.\\\"]\"]",
    ] {
        assert!(protects("aws_db_instance", address), "{address}");
        assert!(protects("aws_db_*", address), "{address}");
        assert!(protects("*_instance", address), "{address}");
        assert!(protects("aws*db*instance*", address), "{address}");
        assert!(protects("*", address), "{address}");
        assert!(!protects("aws_db", address), "{address}");
        assert!(!protects("db_instance", address), "{address}");
        assert!(!protects("main", address), "{address}");
    }
    assert!(!protects(
        "aws_db_*",
        "aws_instance.x[\"aws_db_instance.y\"]"
    ));
}

#[test]
fn an_address_is_protected_as_it_stands_and_without_its_indices() {
    for (pattern, address) in [
        ("a.b", "a.b"),
        ("a.b", "a.b[0]"),
        ("a.b", "a.b[\"k\"]"),
        ("a.b[\"k\"]", "a.b[\"k\"]"),
        ("a.b[\"*.example.com\"]", "a.b[\"www.example.com\"]"),
        ("module.db.*", "module.db.a.b"),
        ("module.db.*", "module.db[\"x.y\"].a.b[1]"),
        ("module.db.*", "module.db.module.inner.a.b"),
        ("module.*.a.b", "module.x.module.y.a.b"),
        ("*.b", "a.b"),
        ("module.db[0].*", "module.db[0].a.b"),
    ] {
        assert!(protects(pattern, address), "{pattern} over {address}");
    }
    for (pattern, address) in [
        ("a.b", "a.bc"),
        ("a.b", "module.m.a.b"),
        ("a.b[0]", "a.b[1]"),
        ("a.b[0]", "a.b"),
        ("module.db.*", "module.db2.a.b"),
        ("module.db.*", "module.x.module.db.a.b"),
        ("module.db[0].*", "module.db[1].a.b"),
        ("a.b?", "a.bc"),
        ("a.*b*b", "a.b"),
    ] {
        assert!(!protects(pattern, address), "{pattern} over {address}");
    }
}

#[test]
fn a_data_source_is_never_protected() {
    for address in ["data.a.b", "module.db.data.a.b", "module.db[0].data.a.b[1]"] {
        for pattern in ["*", "*.*", "data.*", "module.db.*", "a"] {
            assert!(!protects(pattern, address), "{pattern} over {address}");
        }
    }
    assert!(protects("a", "a.data"));
    assert!(protects("a", "module.data.a.b"));
}

#[test]
fn a_pattern_that_could_match_nothing_says_what_is_wrong_with_it() {
    for (pattern, said) in [
        ("", "a pattern is empty"),
        (" a.b", "white space around it"),
        ("a.b\n", "white space around it or a control character"),
        ("a.\tb", "a control character in it"),
        ("aws_?b", "no type has the character '?'"),
        ("a[\"b\"]", "no type has the character '['"),
        ("a b", "no type has the character ' '"),
        ("module.db.", "begins or ends with a dot"),
        (".b", "begins or ends with a dot"),
        ("module.db", "one of a module ends in \".*\""),
        ("module.a.module.b", "is no resource's address"),
        ("module.db.a", "is no resource's address"),
        ("a.b.c", "is no resource's address"),
        ("data.a.b", "is no resource's address"),
    ] {
        let error = pattern.parse::<Pattern>().unwrap_err().to_string();
        assert!(error.contains(said), "{pattern:?}: {error}");
    }
}

#[test]
fn a_variable_is_a_json_list_or_plain_words() {
    let both = protection(&["aws_db_*", "a.b[\"x, y\"]"]);
    assert_eq!(Protection::from_variable(&both.to_json()).unwrap(), both);
    let plain = protection(&["aws_db_*", "module.db.*", "a.b"]);
    for text in [
        "aws_db_*,module.db.*,a.b",
        " aws_db_*  module.db.*\ta.b",
        "aws_db_*,\nmodule.db.*,\na.b\n",
    ] {
        assert_eq!(Protection::from_variable(text).unwrap(), plain, "{text:?}");
    }
    assert!(Protection::from_variable("[]").unwrap().is_empty());
    assert!(Protection::from_variable(" \n").unwrap().is_empty());
    for wrong in ["[", "[1]", "[\"\"]", "[\"a b\"]", "a.b module.db"] {
        assert!(Protection::from_variable(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_trailer_allows_its_very_address() {
    let allowed = Allowed::from_trailers([
        ("Allow-Destroy", " a.b[\"k\"] "),
        ("allow-destroy", "module.db.a.b"),
        ("ALLOW-DESTROY", "a.c, a.d"),
        ("Signed-off-by", "a.e"),
        ("Allow-Destroy", "a.*"),
        ("Allow-Destroy", ""),
    ]);
    assert!(allowed.names("a.b[\"k\"]"));
    assert!(allowed.names("module.db.a.b"));
    for address in ["a.b", "a.B[\"k\"]", "a.c", "a.d", "a.e", "a.x"] {
        assert!(!allowed.names(address), "{address}");
    }
}

#[test]
fn a_refusal_names_each_address_its_pattern_and_the_trailers_that_lift_it() {
    let stopped = |address: &str, known_as: Option<&str>, pattern: &str| Stopped {
        address: address.to_owned(),
        known_as: known_as.map(str::to_owned),
        pattern: pattern.parse().unwrap(),
    };
    let refused = Refused::unless_none(vec![
        stopped("module.db.aws_db_instance.main", None, "aws_db_*"),
        stopped("a.b[\"k\"]", Some("module.old.a.b"), "module.old.*"),
        stopped("a.b[\"k\"]", Some("module.old.a.b"), "module.old.*"),
    ]);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "nothing was applied, since it would destroy what is protected: module.db.aws_db_instance.main (protected by \
         aws_db_*), a.b[\"k\"] (as module.old.a.b protected by module.old.*); a commit lifts that whose message ends with \
         Allow-Destroy: module.db.aws_db_instance.main, Allow-Destroy: a.b[\"k\"]"
    );
    assert_eq!(Refused::unless_none(Vec::new()), Ok(()));
}
