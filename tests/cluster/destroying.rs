//! `stagewright-destroy-stage` on a stage that a real Argo CD deployed and pruned, as the jobs' own account.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use std::sync::PoisonError;

use serde_json::json;

use crate::launches::{Launches, Plan};
use crate::retired::{DeletesVolumes, ELSEWHERE, Retired, STAGE, SeesNamespaces};
use crate::rights::GRANTS;
use crate::testbed::{IMAGE, Testbed, until};

const STATE: &str = "argocd/RetiredDeploy/shop/prd";

fn assert_ended(plan: &Plan, code: i32, words: &[&str]) {
    let Plan {
        code: ended,
        log,
        said,
    } = plan;
    assert_eq!(*ended, Some(code), "{log}\n{said}");
    for word in words {
        assert!(
            log.contains(word) || said.contains(word),
            "{word}: {log}\n{said}"
        );
    }
}

#[test]
fn a_stage_that_argo_cd_pruned_is_cleared_previewed_and_destroyed_and_what_the_cluster_lacks_or_keeps_needs_a_flag()
 {
    let Some(testbed) = Testbed::find() else {
        return;
    };
    let retired = Retired::new(testbed);
    still_deployed(&retired);
    let launches = Launches::new().unwrap();
    pruned(&retired);
    destroyed(&retired);
    assert_eq!(launches.left(), Vec::<String>::new());
    drop(launches);
    retired.remove();
}

/// From the deployed stage to the one that nothing deploys any more.
fn still_deployed(retired: &Retired) {
    let both = retired.check(&[]);
    let registered = "by the registry entry apps.shop.stages.prd in RetiredRegistry's releases/values.yaml on main and the live \
                      Application argocd/retired-prd. This build cleans up";
    assert_ended(&both, 3, &[registered]);
    retired.register(&["dev"]);
    retired.delete(&[
        "application.argoproj.io",
        STAGE,
        "--namespace=argocd",
        "--wait=false",
    ]);
    until("the end of the namespace", || {
        (!retired.has_namespace()).then_some(())
    });
    let deleting = retired.preview(&[]);
    let words = "by the live Application argocd/retired-prd, which is being deleted. This build";
    assert_ended(&deleting, 3, &[words]);
    retired.release();
    let unproven = retired.check(&[]);
    let words =
        "Nothing proves that the live Application argocd/retired-whole deploys something else";
    assert_ended(
        &unproven,
        3,
        &[
            "prd of example/RetiredDeploy/shop may still be deployed.",
            words,
        ],
    );
    let count = || {
        let list = |namespace| {
            let list = ["applications.argoproj.io", "--namespace", namespace];
            retired.admin.read(&list)["items"].as_array().unwrap().len()
        };
        list("argocd") + list(ELSEWHERE)
    };
    // Another test has one there as well for some time.
    let before = count();
    let cleared = retired.check(&["--not-deploying", "argocd/retired-whole"]);
    let after = count();
    assert_ended(
        &cleared,
        0,
        &[" in 1 instance, 0 match, 0 unproven, 1 lifted by --not-deploying\n"],
    );
    let counted = &retired.written("result.json")["check"]["applications"];
    assert!(
        [json!(before), json!(after)].contains(counted),
        "{before}, {after}: {counted}"
    );
    assert!(
        cleared
            .said
            .contains(&format!("\napplications {counted} Applications in")),
        "{}",
        cleared.said
    );
}

/// Previews without and with the right to see namespaces, and with what speaks against a destroy.
fn pruned(retired: &Retired) {
    let before = retired.repositories();
    let refused = retired.run(
        &json!({}),
        &["preview", "--not-deploying", "argocd/retired-whole"],
    );
    assert_ended(&refused, 7, &["the service account must be tf-presync"]);

    let blind = retired.preview(&["--record", "blind.json"]);
    assert_ended(
        &blind,
        0,
        &[
            "kubernetes: the Job argocd-hooks/destroy-stage-41 in the cluster of the context testbed",
            "\nData that is lost for good (1)\n  volume  kubernetes_persistent_volume.data  name=retired-data\n",
            "\n  kubernetes_config_map.settings: kubernetes_config_map retired-prd/settings\n  kubernetes_secret.token: \
             kubernetes_secret retired-prd/token\n  the namespace retired-prd could not be looked at (",
            "namespaces \"retired-prd\" is forbidden",
            "\n  shop/config/prd/stage.tfvars ",
            "3 object(s) in the state: 1 destroyed, 2 forgotten, 0 already gone; 1 hold(s) data",
            "registry.terraform.io/hashicorp/kubernetes 1.13.4",
            "presync: dry run: nothing was written",
        ],
    );
    let _granted = GRANTS.lock().unwrap_or_else(PoisonError::into_inner);
    let _sees = SeesNamespaces::grant(retired);
    let seeing = retired.preview(&["--record", "seeing.json"]);
    assert_ended(
        &seeing,
        0,
        &["\n  the namespace retired-prd is gone (NotFound)\n"],
    );
    let (blind, seeing) = (
        retired.written("blind.json"),
        retired.written("seeing.json"),
    );
    assert_eq!(blind["digest"], seeing["digest"]);
    let image = seeing["image"].as_str().unwrap();
    assert!(image.contains("sha256:"), "{image}");
    assert_eq!(
        seeing["not_in_use"]["lifted"][0]["application"],
        "argocd/retired-whole"
    );
    assert!(!seeing.to_string().contains("swordfish"));

    // As in another cluster, where nothing of the state exists.
    retired.delete(&["persistentvolume", "retired-data"]);
    let lacks = retired.preview(&[]);
    let words = "stagewright-destroy-stage: of provider[\"registry.terraform.io/hashicorp/kubernetes\"] the provider finds nothing \
                 that the state lists, as it would in a wrong cluster or account";
    assert_ended(&lacks, 3, &[words, "--accept-gone takes it as gone\n"]);
    // And where there is a namespace of that name.
    retired
        .apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": STAGE } }));
    let lives = retired.preview(&["--accept-gone"]);
    let words = "stagewright-destroy-stage: the namespace retired-prd still lives, so";
    assert_ended(&lives, 3, &[words, "or leave them by --leave-behind\n"]);
    let both = ["--accept-gone", "--leave-behind", "--record", "both.json"];
    assert_ended(
        &retired.preview(&both),
        0,
        &[
            "\nData that is lost for good (0)\n",
            "\n  the namespace retired-prd still lives: what is in it stays behind\n",
            "\n  kubernetes_persistent_volume.data: already gone, says the provider\n",
        ],
    );
    let allowed = &retired.written("both.json")["allowed"];
    assert_eq!(*allowed, json!(["accept-gone", "leave-behind"]));
    assert_eq!(retired.repositories(), before);
}

/// From a confirmed preview to both commits, through a KILL of the job while its Job ran.
fn destroyed(retired: &Retired) {
    retired.delete(&["namespace", STAGE]);
    retired.apply_volume();
    let record = ["--record", "record.json"];
    let previewed = retired.preview(&record);
    assert_ended(
        &previewed,
        0,
        &["3 object(s) in the state: 1 destroyed, 2 forgotten"],
    );
    let image = retired.killed_destroy("record.json");
    let previewed = retired.written("record.json");
    let (_, digest) = previewed["image"]
        .as_str()
        .unwrap()
        .split_once('@')
        .unwrap();
    assert_eq!(image, format!("{IMAGE}@{digest}"));

    let by_whom = [&record[..], &["--approved-by", "someone"]].concat();
    let followed = retired.step("destroy", &by_whom);
    assert_ended(
        &followed,
        4,
        &[
            "the Job argocd-hooks/destroy-stage-41 carries out this confirmation already: it is followed to its end",
            "presync: forgetting 2 namespaced Kubernetes object(s), which are not destroyed",
            "tf-presync\" cannot delete resource \"persistentvolumes\"",
            "the log ends with: terraform apply ended with exit code 1",
        ],
    );
    assert!(retired.has_volume());
    assert!(retired.has("TerraformState", STATE));
    let early = retired.step("remove-config", &by_whom);
    assert_ended(
        &early,
        3,
        &["so the config folder stays: run destroy with it first"],
    );

    let _granted = GRANTS.lock().unwrap_or_else(PoisonError::into_inner);
    let _deletes = DeletesVolumes::grant(retired);
    let rest = retired.step("destroy", &by_whom);
    assert_ended(
        &rest,
        0,
        &[
            "what is there is the rest of what was confirmed",
            "kubernetes_persistent_volume.data: Destruction complete",
            "presync: the state lists no resources",
            "presync: removed argocd/RetiredDeploy/shop/prd/ from the state repository",
        ],
    );
    assert!(!retired.has_volume());
    assert!(!retired.has("TerraformState", STATE));
    let message = retired.last_message("TerraformState");
    assert!(
        message.contains(&format!(
            "Digest: {}",
            previewed["digest"].as_str().unwrap()
        )),
        "{message}"
    );

    let removed = retired.step("remove-config", &by_whom);
    assert_ended(&removed, 0, &[" removes shop/config/prd/\n"]);
    assert!(!retired.has("RetiredDeploy", "shop/config/prd"));
    assert!(retired.has("RetiredDeploy", "shop/config/dev"));
    let message = retired.last_message("RetiredDeploy");
    assert!(message.contains("\nApproved-By: someone\n"), "{message}");

    let done = retired.step("destroy", &record);
    assert_ended(&done, 0, &["was destroyed by this record at "]);
    let nothing = retired.preview(&[]);
    assert_ended(
        &nothing,
        0,
        &["of RetiredDeploy/shop/prd nothing is left to destroy or remove"],
    );
}
