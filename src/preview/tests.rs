use std::collections::BTreeSet;

use super::agreement::{Agreement, agreement};
use super::objections::{Allowance, Left, Namespaced, against, left, objections};
use super::question::question;
use super::reading::{Context, reading};
use super::*;
use crate::terraform::changes::Changes;
use crate::transport::record::StatePosition;

/// A stage with a database, a secret that is forgotten, an object that is gone, and a protection.
fn whole() -> Preview {
    let plan = r#"{"format_version": "1.2", "resource_changes": [
        {"address": "aws_db_instance.main", "change": {"actions": ["delete"]}},
        {"address": "terraform_data.x", "change": {"actions": ["delete"]}}],
        "resource_drift": [{"address": "aws_sqs_queue.q", "change": {"actions": ["delete"]}}],
        "output_changes": {"url": {"actions": ["delete"]}}}"#;
    let Changes {
        resources,
        outputs,
        gone,
    } = Changes::read(plan.as_bytes()).unwrap();
    Preview {
        version: VERSION,
        revision: "0123456789012345678901234567890123456789".parse().unwrap(),
        bound: Bound {
            repo: "ShopDeploy".parse().unwrap(),
            path: None,
            stage: "prd".parse().unwrap(),
            namespace: None,
            trees: BTreeMap::from([("terraform".to_owned(), "aa".to_owned())]),
            state: StateSeen {
                key: "argocd/ShopDeploy/prd/terraform.tfstate".parse().unwrap(),
                position: Some(StatePosition {
                    lineage: "l".to_owned(),
                    serial: 12,
                }),
            },
            versions: Versions {
                stagewright: "1.0.0".to_owned(),
                terraform: "Terraform 1.11.4".to_owned(),
                providers: BTreeMap::new(),
            },
            changes: resources,
            outputs,
            gone,
            forgotten: vec![Forgotten {
                address: "kubernetes_secret.s".to_owned(),
                kind: "kubernetes_secret".to_owned(),
                namespace: "shop-prd".to_owned(),
                name: Some("s".to_owned()),
                stays: None,
            }],
        },
        told: Told {
            written: Some(Written {
                commit: "1123456789012345678901234567890123456789".parse().unwrap(),
                by: "hook <hook@example>".to_owned(),
                at: "2026-01-02T03:04:05Z".to_owned(),
            }),
            data: vec![Data {
                address: "aws_db_instance.main".to_owned(),
                what: "database".to_owned(),
                identity: vec![("identifier".to_owned(), "shop\u{1b}[2K".to_owned())],
            }],
            state_folder: StateFolder {
                path: "argocd/ShopDeploy/prd".to_owned(),
                ..StateFolder::default()
            },
            config: ConfigFolder {
                path: "config/prd".to_owned(),
                files: vec!["values.yaml".to_owned()],
                last_seen: None,
            },
            objects: 4,
            ..Told::default()
        },
        values: Values::default(),
    }
}

fn said(
    preview: &Preview,
    namespaces: &[(String, Namespaced)],
) -> Vec<(String, Option<Allowance>)> {
    let objections = objections(preview, namespaces).into_iter();
    objections.map(|o| (o.sentence, o.lifted_by)).collect()
}

#[test]
fn a_preview_is_read_from_what_it_is_about_to_what_is_confirmed_with_data_before_everything_else() {
    let context = Context {
        cluster: "the context prd".to_owned(),
        not_in_use: vec!["187 Applications in 2 instances, 0 match, 0 unproven".to_owned()],
        namespaces: vec![("shop-prd".to_owned(), Namespaced::NotFound)],
        config_from: "example/ShopDeploy's main".to_owned(),
        collateral: Vec::new(),
    };
    let preview = whole();
    let digest = preview.bound.digest();
    assert_eq!(
        reading(&preview, &context).to_string(),
        format!(
            "What a destroy of ShopDeploy/prd takes

What
  target   ShopDeploy/prd
  at       0123456789012345678901234567890123456789
  cluster  the context prd
  state    argocd/ShopDeploy/prd/terraform.tfstate
           lineage l, serial 12
           last written at 2026-01-02T03:04:05Z by hook <hook@example>

Not in use
  187 Applications in 2 instances, 0 match, 0 unproven

Data that is lost for good (1)
  database  aws_db_instance.main  identifier=shop\\u{{1b}}[2K

Destroyed as well
  terraform_data.x: destroy

Forgotten, not destroyed
  kubernetes_secret.s: kubernetes_secret shop-prd/s
  the namespace shop-prd is gone (NotFound)

Already gone, says the provider
  aws_sqs_queue.q: already gone, says the provider

Outputs that go
  url

Removed by commits
  argocd/ShopDeploy/prd/terraform.tfstate  from the state repository
  config/prd/values.yaml                   from example/ShopDeploy's main

In all
  4 object(s) in the state: 2 destroyed, 1 forgotten, 1 already gone; 1 hold(s) data
  with stagewright 1.0.0, Terraform 1.11.4
  digest {digest}
"
        )
    );
}

#[test]
fn the_question_has_the_counts_what_holds_data_and_the_digest() {
    let mut preview = whole();
    let digest = preview.bound.digest();
    assert_eq!(
        question(&preview, "2026-01-02T04:04:05Z").unwrap(),
        format!(
            "Destroy what the plan above shows for prd of ShopDeploy?

4 object(s) in the state: 2 destroyed, 1 forgotten, 1 already gone; 1 hold(s) data.
Data that is lost for good:
- database aws_db_instance.main identifier=shop\\u{{1b}}[2K
argocd/ShopDeploy/prd/terraform.tfstate goes from the state repository.
config/prd/ with 1 file(s) goes from ShopDeploy's main.
Digest {digest}, to be confirmed until 2026-01-02T04:04:05Z."
        )
    );
    preview.told.data = vec![preview.told.data[0].clone(); 22];
    let long = question(&preview, "").unwrap();
    assert!(long.contains("\n- and 2 more\n"), "{long}");
    preview.bound.path = Some("grafana".parse().unwrap());
    preview.bound.state.position = None;
    let config = question(&preview, "").unwrap();
    assert!(
        config.starts_with(
            "Destroy what the plan above shows for prd of ShopDeploy/grafana?\n\nThere is no state at "
        ),
        "{config}"
    );
    preview.told.config.files.clear();
    assert_eq!(question(&preview, ""), None);
}

#[test]
fn the_digest_binds_what_would_happen_and_not_what_is_told_beside_it() {
    let preview = whole();
    let digest = preview.bound.digest();
    let mut told = preview.clone();
    told.told.warnings.push("odd".to_owned());
    told.revision = "2123456789012345678901234567890123456789".parse().unwrap();
    assert_eq!(told.bound.digest(), digest);
    let changed: [fn(&mut Bound); 8] = [
        |b| b.stage = "dev".parse().unwrap(),
        |b| b.namespace = Some("x".parse().unwrap()),
        |b| drop(b.trees.insert("config/prd".to_owned(), "bb".to_owned())),
        |b| b.state.position = None,
        |b| b.versions.terraform = "Terraform 1.11.5".to_owned(),
        |b| drop(b.changes.pop()),
        |b| drop(b.gone.pop()),
        |b| drop(b.forgotten.pop()),
    ];
    for (number, change) in changed.into_iter().enumerate() {
        let mut other = preview.bound.clone();
        change(&mut other);
        assert_ne!(other.digest(), digest, "{number}");
    }
}

#[test]
fn nothing_speaks_against_a_plain_destroy() {
    assert_eq!(
        said(&whole(), &[("shop-prd".to_owned(), Namespaced::NotFound)]),
        []
    );
    assert_eq!(left(&whole()), Left::State);
}

#[test]
fn each_objection_is_lifted_by_its_own_flag_and_a_foreign_file_beside_the_state_by_none() {
    let mut preview = whole();
    preview.told.all_gone = vec!["provider[\"x/y/aws\"]".to_owned()];
    preview.told.provisioners = vec![Note {
        address: "null_resource.n".to_owned(),
        what: "its destroy-time provisioner does not run".to_owned(),
        place: Some("terraform/main.tf:3".to_owned()),
    }];
    let namespaces = [
        ("shop-prd".to_owned(), Namespaced::Lives),
        (
            "other".to_owned(),
            Namespaced::Unknown("forbidden".to_owned()),
        ),
    ];
    let lifted_by: Vec<_> = said(&preview, &namespaces)
        .into_iter()
        .map(|(_, by)| by)
        .collect();
    assert_eq!(
        lifted_by,
        [
            Some(Allowance::AcceptGone),
            Some(Allowance::SkipDestroyProvisioners),
            Some(Allowance::LeaveBehind)
        ]
    );
    for (sentence, by) in said(&preview, &namespaces) {
        assert!(sentence.contains(&by.unwrap().to_string()), "{sentence}");
    }
    preview.told.state_folder.beside = vec!["b/".to_owned()];
    let (standing, used) = against(
        objections(&preview, &namespaces),
        &BTreeSet::from([
            Allowance::AcceptGone,
            Allowance::AcceptNoState,
            Allowance::SkipDestroyProvisioners,
            Allowance::LeaveBehind,
        ]),
    );
    assert_eq!(standing.len(), 1);
    assert!(
        standing[0]
            .sentence
            .starts_with("argocd/ShopDeploy/prd/ in the state repository holds more")
    );
    assert!(!used.contains(&Allowance::AcceptNoState) && used.len() == 3);
}

#[test]
fn a_missing_state_is_a_refusal_until_a_proof_or_the_flag_says_that_it_is_right() {
    let mut preview = whole();
    preview.bound.state.position = None;
    preview.told.state_folder.near =
        vec!["argocd/ShopDeploy/dev/terraform.tfstate".parse().unwrap()];
    let [(sentence, by)] = &said(&preview, &[])[..] else {
        panic!()
    };
    assert!(
        sentence.starts_with("NO STATE WAS FOUND AT argocd/ShopDeploy/prd/terraform.tfstate; near it are argocd/ShopDeploy/dev/terraform.tfstate"),
        "{sentence}"
    );
    assert_eq!(*by, Some(Allowance::AcceptNoState));
    assert_eq!(left(&preview), Left::Config);

    let mut nowhere = preview.clone();
    nowhere.told.config.files.clear();
    let [(sentence, None)] = &said(&nowhere, &[])[..] else {
        panic!()
    };
    assert!(
        sentence.starts_with("there is nothing of ShopDeploy/prd anywhere"),
        "{sentence}"
    );

    for mut preview in [preview, nowhere] {
        preview.told.state_folder.proof = Some(preview.revision.clone());
        assert_eq!(said(&preview, &[]), []);
    }
}

fn agreed(change: impl FnOnce(&mut Bound)) -> Result<Agreement, Vec<String>> {
    let confirmed = whole().bound;
    let mut now = confirmed.clone();
    change(&mut now);
    agreement(&confirmed.digest(), Some(&confirmed), &now)
}

fn serial(bound: &mut Bound, serial: u64) {
    bound.state.position.as_mut().unwrap().serial = serial;
}

#[test]
fn what_was_confirmed_agrees_and_so_does_what_a_run_has_left_of_it() {
    assert_eq!(agreed(|_| ()), Ok(Agreement::Whole));
    let rest = agreed(|now| {
        serial(now, 15);
        now.changes.pop();
        now.forgotten.clear();
    });
    assert_eq!(rest, Ok(Agreement::Rest));
    // Destroyed, and that could not be saved, or only of another resource.
    for position in [12, 13] {
        let gone = agreed(|now| {
            serial(now, position);
            let destroyed = now.changes.pop().unwrap();
            now.gone.push(Gone {
                address: destroyed.address,
                deposed: None,
            });
        });
        assert_eq!(gone, Ok(Agreement::Rest), "{position}");
    }
    let without_state = agreed(|now| {
        now.state.position = None;
        (now.changes, now.outputs) = (Vec::new(), Vec::new());
        (now.gone, now.forgotten) = (Vec::new(), Vec::new());
        now.versions.providers.clear();
    });
    assert_eq!(without_state, Ok(Agreement::Rest));
}

#[test]
fn what_is_more_than_confirmed_or_less_without_a_write_or_on_other_ground_has_moved() {
    type Case = (fn(&mut Bound), &'static str);
    let cases: [Case; 10] = [
        (
            |b| serial(b, 13),
            "the state has the serial 13, and 12 was confirmed",
        ),
        (
            |b| b.changes[1].address = "terraform_data.new".to_owned(),
            "terraform_data.new: destroy, which was not confirmed",
        ),
        (
            |b| drop(b.changes.pop()),
            "no longer terraform_data.x: destroy",
        ),
        (
            |b| b.gone[0].address = "aws_db_instance.other".to_owned(),
            "aws_db_instance.other: already gone, says the provider, which was not confirmed",
        ),
        (
            |b| serial(b, 11),
            "the state has the serial 11, and 12 was confirmed",
        ),
        (
            |b| b.state.position.as_mut().unwrap().lineage = "m".to_owned(),
            "the state has the lineage m, and l was confirmed",
        ),
        (
            |b| drop(b.trees.insert("terraform".to_owned(), "cc".to_owned())),
            "the folder terraform has changed",
        ),
        (
            |b| b.stage = "dev".parse().unwrap(),
            "ShopDeploy/prd was confirmed, and this is ShopDeploy/dev",
        ),
        (
            |b| b.versions.terraform = "OpenTofu 1.12.6".to_owned(),
            "stagewright 1.0.0 with Terraform 1.11.4 made the preview, and this is stagewright 1.0.0 with OpenTofu 1.12.6",
        ),
        (
            |b| b.namespace = Some("x".parse().unwrap()),
            "the namespace is another one",
        ),
    ];
    for (change, said) in cases {
        let differences = agreed(change).unwrap_err();
        assert!(differences.contains(&said.to_owned()), "{differences:?}");
    }
    // Without the record only the whole of it agrees, and a record of something else is none.
    let confirmed = whole().bound;
    let mut rest = confirmed.clone();
    serial(&mut rest, 15);
    assert!(agreement(&confirmed.digest(), None, &rest).is_err());
    assert!(agreement("sha256:00", Some(&confirmed), &rest).is_err());
}

#[test]
fn what_the_plan_itself_forgets_is_told_and_counted_as_forgotten() {
    let mut preview = whole();
    for change in &mut preview.bound.changes {
        if change.address == "terraform_data.x" {
            change.action = Action::Forget;
        }
    }
    let read = reading(&preview, &Context::default());
    let heading = |text: &str| {
        let mut sections = read.sections.iter();
        let section = sections.find(|section| {
            let mut cells = section.rows.iter().flatten();
            cells.any(|cell| cell.starts_with(text))
        });
        section.map(|section| section.heading.as_str())
    };
    assert_eq!(
        heading("terraform_data.x"),
        Some("Forgotten, not destroyed")
    );
    assert!(
        read.to_string()
            .contains("1 destroyed, 2 forgotten, 1 already gone"),
        "{read}"
    );
}
