//! What is a fault, and what an edit leaves as it was.
use super::edit::{Edit, EditError, add, remove, repoint};
use super::*;

const FILE: &str = "p.yaml";

const SOUND: &str = "# Who publishes.\nproducers:\n  - id: argocd-deploy\n    repo: example/ArgoCDDeploy\n    jenkinsJob: AaC/ArgoCDDeploy\n  - id: fleet\n    # no repository\n    jenkinsJob: AaC/The Fleet  # nightly\n    defaultLogo: fleet\n\n  # -- firmware --\n  - id: clock\n    repo: example/Clock\n    jenkinsJob: AaC/Clock\n    self: true\n";

fn producer(id: &str, repo: &str, job: &str, path: Option<&str>) -> Producer {
    Producer {
        id: id.parse().unwrap(),
        repo: Some(repo.parse().unwrap()),
        job: job.parse().unwrap(),
        path: path.map(|path| path.parse().unwrap()),
        is_self: false,
        default_logo: None,
    }
}

fn faults(text: &str) -> String {
    let faults = Producers::read(text, FILE).unwrap_err();
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn text_of(edit: Result<Edit, EditError>) -> String {
    match edit {
        Ok(Edit::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sound_file_has_its_entries_in_order() {
    let read = Producers::read(SOUND, FILE).unwrap();
    let ids: Vec<&str> = read.all().map(|p| p.id.as_str()).collect();
    assert_eq!(ids, ["argocd-deploy", "fleet", "clock"]);
    let fleet = read.get(&"fleet".parse().unwrap()).unwrap();
    assert_eq!(fleet.repo, None);
    assert_eq!(fleet.job.as_str(), "AaC/The Fleet");
    assert!(read.get(&"clock".parse().unwrap()).unwrap().is_self);
}

#[test]
fn every_fault_is_told_at_once_with_its_line() {
    let text = "producers:\n  - id: Shop\n    jenkinsJob: a//b\n  - repo: example/Shop.git\n    color: red\n  - id: a\n    jenkinsJob: J\n  - id: a\n    jenkinsJob: J\n    self: yes\n    path: ../x\n  - just text\n";
    let told = faults(text);
    for wanted in [
        "p.yaml:2:9: Shop: \"id\": \"Shop\" is not a valid producer id",
        "p.yaml:3:17: Shop: \"jenkinsJob\": \"a//b\" is not a valid Jenkins job",
        "p.yaml:4:5: the entry: the key \"id\" is missing",
        "p.yaml:4:5: the entry: the key \"jenkinsJob\" is missing",
        "p.yaml:4:11: the entry: \"repo\": ",
        "p.yaml:5:5: the entry: unknown key \"color\"; known are id, repo,",
        "p.yaml:10:11: a: \"self\" takes true or false",
        "p.yaml:11:11: a: \"path\": ",
        "p.yaml:12:5: a text stands where an entry",
    ] {
        assert!(told.contains(wanted), "{wanted}\n{told}");
    }
}

#[test]
fn an_id_is_used_once_and_producers_that_share_a_job_each_have_a_path() {
    let text = "producers:\n- {id: a, jenkinsJob: J, path: x}\n- {id: b, jenkinsJob: J}\n- {id: a, jenkinsJob: K}\n";
    assert_eq!(
        faults(text),
        "p.yaml:3:3: b: 2 producers share the job J, so each of them needs \"path\", its folder\n\
         p.yaml:4:3: the id a is already used at 2:3; an id names one artifact, so give this one another"
    );
}

#[test]
fn a_file_of_another_shape_is_told_the_shape() {
    for (text, found) in [
        ("", "nothing stands here"),
        ("- id: a\n", "a list stands here"),
        ("producers: {}\n", "a mapping stands here"),
        ("producers: []\n", "the list is empty"),
        (
            "more: 1\nproducers: [{id: a, jenkinsJob: J}]\n",
            "unknown key \"more\"",
        ),
    ] {
        let told = faults(text);
        assert!(told.contains(found), "{text}: {told}");
    }
    assert!(
        faults("producers:\n  - id: a\n    id: b\n")
            .contains("p.yaml:3:5: the key \"id\" is already set at 2:5")
    );
}

#[test]
fn a_new_entry_goes_to_the_end_of_the_section_of_its_kind_and_nothing_else_changes() {
    let new = producer("shop-deploy", "example/ShopDeploy", "AaC/Shop Deploy", None);
    let lines =
        "  - id: shop-deploy\n    repo: example/ShopDeploy\n    jenkinsJob: AaC/Shop Deploy\n";
    let (before, after) = SOUND.split_at(SOUND.find("\n  # -- firmware").unwrap());
    assert_eq!(
        text_of(add(SOUND, FILE, &new)),
        format!("{before}{lines}{after}")
    );
    let other = producer("lamp", "example/Lamp", "AaC/Lamp", None);
    let text = text_of(add(SOUND, FILE, &other));
    assert_eq!(
        text,
        format!("{SOUND}  - id: lamp\n    repo: example/Lamp\n    jenkinsJob: AaC/Lamp\n")
    );
}

#[test]
fn a_new_entry_stands_behind_the_last_one_of_its_repository() {
    let text = "producers:\n- id: a-deploy\n  repo: x/Mono\n  jenkinsJob: J\n  path: a\n\n- id: z\n  jenkinsJob: Z";
    let new = producer("b-deploy", "x/Mono", "J", Some("b"));
    let (before, after) = text.split_at(text.find("\n- id: z").unwrap());
    assert_eq!(
        text_of(add(text, FILE, &new)),
        format!("{before}- id: b-deploy\n  repo: x/Mono\n  jenkinsJob: J\n  path: b\n{after}")
    );
    let last = text_of(add(text, FILE, &producer("w", "x/W", "W", None)));
    assert_eq!(
        last,
        format!("{text}\n- id: w\n  repo: x/W\n  jenkinsJob: W")
    );
}

#[test]
fn lines_of_a_file_with_crlf_end_so() {
    let text = SOUND.replace('\n', "\r\n");
    let new = producer("lamp", "example/Lamp", "AaC/Lamp", None);
    assert_eq!(
        text_of(add(&text, FILE, &new)),
        format!("{text}  - id: lamp\r\n    repo: example/Lamp\r\n    jenkinsJob: AaC/Lamp\r\n")
    );
}

#[test]
fn a_value_that_yaml_would_take_for_something_else_is_quoted() {
    let new = producer("lamp", "example/on", "1/2", Some("1.10"));
    let text = text_of(add(SOUND, FILE, &new));
    assert!(
        text.ends_with("    jenkinsJob: 1/2\n    path: '1.10'\n"),
        "{text}"
    );
    let odd = producer("lamp", "example/L", "it's, a {job}", None);
    assert!(text_of(add(SOUND, FILE, &odd)).ends_with("jenkinsJob: 'it''s, a {job}'\n"));
}

#[test]
fn the_same_entry_again_is_nothing_to_do_and_another_of_the_id_is_shown_beside_it() {
    let same = producer(
        "argocd-deploy",
        "example/ArgoCDDeploy",
        "AaC/ArgoCDDeploy",
        None,
    );
    assert_eq!(add(SOUND, FILE, &same), Ok(Edit::Nothing));
    let other = producer("argocd-deploy", "example/Other", "AaC/ArgoCDDeploy", None);
    let refused = add(SOUND, FILE, &other).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "p.yaml:3:5: the id argocd-deploy is there already and says something else\n  \
         there:  id: argocd-deploy, repo: example/ArgoCDDeploy, jenkinsJob: AaC/ArgoCDDeploy\n  \
         wanted: id: argocd-deploy, repo: example/Other, jenkinsJob: AaC/ArgoCDDeploy\n\
         To point the entry elsewhere, ask for that with --repoint"
    );
}

#[test]
fn a_job_that_gets_a_second_producer_needs_paths_in_both() {
    let second = producer(
        "b-deploy",
        "example/ArgoCDDeploy",
        "AaC/ArgoCDDeploy",
        Some("b"),
    );
    let refused = add(SOUND, FILE, &second).unwrap_err().to_string();
    assert!(
        refused.contains("argocd-deploy: 2 producers share the job AaC/ArgoCDDeploy, so each of them needs \"path\""),
        "{refused}"
    );
}

#[test]
fn an_entry_is_pointed_elsewhere_and_keeps_its_comments_and_other_keys() {
    let clock = producer("clock", "example/Mono", "AaC/Mono", Some("clock"));
    let text = text_of(repoint(SOUND, FILE, &clock));
    let expected = SOUND
        .replace("example/Clock", "example/Mono")
        .replace("AaC/Clock", "AaC/Mono")
        + "    path: clock\n";
    assert_eq!(text, expected);
    let back = producer("clock", "example/Clock", "AaC/Clock", None);
    assert_eq!(text_of(repoint(&text, FILE, &back)), SOUND);
    assert_eq!(repoint(SOUND, FILE, &back), Ok(Edit::Nothing));
    let fleet = Producer {
        repo: None,
        ..producer("fleet", "x/y", "AaC/Fleet", None)
    };
    assert_eq!(
        text_of(repoint(SOUND, FILE, &fleet)),
        SOUND.replace("AaC/The Fleet  # nightly", "AaC/Fleet  # nightly")
    );
    let absent = producer("clok", "example/Clock", "AaC/Clock", None);
    let told = repoint(SOUND, FILE, &absent).unwrap_err().to_string();
    assert!(
        told.starts_with("p.yaml has no producer clok; it has clock"),
        "{told}"
    );
}

#[test]
fn an_entry_goes_with_what_is_in_it_and_its_neighbours_comments_stay() {
    let text = text_of(remove(SOUND, FILE, &"fleet".parse().unwrap()));
    let gone = "  - id: fleet\n    # no repository\n    jenkinsJob: AaC/The Fleet  # nightly\n    defaultLogo: fleet\n";
    assert_eq!(text, SOUND.replace(gone, ""));
    assert_eq!(
        remove(SOUND, FILE, &"absent".parse().unwrap()),
        Ok(Edit::Nothing)
    );
    let only = "producers:\n- id: a\n  jenkinsJob: J\n";
    assert!(matches!(
        remove(only, FILE, &"a".parse().unwrap()),
        Err(EditError::Last { .. })
    ));
}

#[test]
fn an_entry_whose_anchor_others_use_does_not_go() {
    let text = "producers:\n- id: a\n  repo: &r x/A\n  jenkinsJob: J\n- id: b\n  repo: *r\n  jenkinsJob: K\n";
    let refused = remove(text, FILE, &"a".parse().unwrap()).unwrap_err();
    assert!(matches!(refused, EditError::NotProven { .. }), "{refused}");
    let aliased = producer("b", "x/B", "K", None);
    let refused = repoint(text, FILE, &aliased).unwrap_err().to_string();
    assert!(
        refused.contains("comes from elsewhere by an alias"),
        "{refused}"
    );
}

#[test]
fn a_list_that_is_not_written_line_by_line_is_left_to_a_person() {
    for text in [
        "producers: [{id: a, jenkinsJob: J}]\n",
        "producers:\n  [{id: a, jenkinsJob: J}]\n",
        "{producers: [{id: a, jenkinsJob: J}]}",
    ] {
        let new = producer("b", "x/B", "K", None);
        let refused = add(text, FILE, &new).unwrap_err();
        assert!(
            matches!(refused, EditError::Form { .. }),
            "{text}: {refused}"
        );
    }
}

#[test]
fn a_comment_between_the_dash_and_the_entry_stays_and_so_does_the_end_of_the_document() {
    let noted = "producers:\n  - # the first\n    id: a\n    jenkinsJob: J\n";
    let new = Producer {
        repo: None,
        ..producer("b", "x/B", "K", None)
    };
    let lines = "  - id: b\n    jenkinsJob: K\n";
    assert_eq!(text_of(add(noted, FILE, &new)), format!("{noted}{lines}"));
    let ended = "---\nproducers:\n  - id: a\n    jenkinsJob: J\n...\n";
    assert_eq!(
        text_of(add(ended, FILE, &new)),
        ended.replace("...\n", &format!("{lines}...\n"))
    );
}

#[test]
fn merged_keys_count_and_their_bytes_stay() {
    let text = "producers:\n- &base\n  id: a\n  repo: x/Mono\n  jenkinsJob: J\n  path: a\n- <<: *base\n  id: b\n  path: b\n";
    let new = producer("c", "x/Mono", "J", Some("c"));
    assert_eq!(
        text_of(add(text, FILE, &new)),
        format!("{text}- id: c\n  repo: x/Mono\n  jenkinsJob: J\n  path: c\n")
    );
}

#[test]
fn an_id_that_yaml_would_take_for_a_truth_value_is_quoted_and_plain_in_the_file_a_fault() {
    let on = producer("on", "example/On", "AaC/On", None);
    let text = text_of(add(SOUND, FILE, &on));
    assert!(text.contains("  - id: 'on'\n"), "{text}");
    let told = faults("producers:\n- id: on\n  jenkinsJob: J\n");
    assert!(
        told.contains("p.yaml:2:7: on: \"id\": Helm reads on without quotes"),
        "{told}"
    );
}

#[test]
fn a_list_of_nothing_a_second_document_and_a_list_of_texts_are_never_edited() {
    let new = producer("b", "x/B", "K", None);
    for text in [
        "producers: []\n",
        "producers:\n",
        "producers: {}\n",
        "producers:\n  - shop\n",
        "producers:\n- id: a\n  jenkinsJob: J\n---\nproducers:\n- id: c\n  jenkinsJob: L\n",
        "",
    ] {
        let refused = add(text, FILE, &new).unwrap_err();
        assert!(matches!(refused, EditError::Faults(_)), "{text}: {refused}");
    }
}
