//! A page with everything that could break one: all kinds of change, long addresses and values without a place to break, text that
//! looks like mark-up, what turns the direction of writing.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use stagewright::page::{Body, Fact, Item, Page, Part, Tone, Verdict};
use stagewright::terraform::changes::Action;
use stagewright::terraform::values::{Values, ValuesOf};

/// Text that looks like mark-up.
pub const HOSTILE: &str = "</code><script>window.touched = 1</script><img src=http://example.com/x.png onerror=touched=1>&lt;\"'";

fn values(
    attributes: &[(&str, serde_json::Value, serde_json::Value)],
    same: usize,
) -> Option<ValuesOf> {
    let attributes: Vec<serde_json::Value> = attributes
        .iter()
        .map(|(path, before, after)| serde_json::json!({"path": path, "before": before, "after": after}))
        .collect();
    let values = serde_json::json!({"outputs": [], "left_out": 0, "resources": [
        {"address": "", "attributes": attributes, "same": same}]});
    let mut values: Values = serde_json::from_value(values).unwrap();
    Some(values.resources.remove(0))
}

fn text(text: &str) -> serde_json::Value {
    serde_json::json!({"text": {"text": text}})
}

fn json(text: &str) -> serde_json::Value {
    serde_json::json!({"json": {"text": text}})
}

fn item(address: &str, action: Action, values: Option<ValuesOf>) -> Item {
    Item {
        address: address.to_owned(),
        action,
        words: action.word().to_owned(),
        data: None,
        notes: Vec::new(),
        values,
    }
}

/// The page.
pub fn page() -> Page {
    let absent = || serde_json::json!("absent");
    let hidden = || serde_json::json!("hidden");
    let unknown = || serde_json::json!("unknown");
    let long = "abcdefghij".repeat(60);
    let mut database = item(
        "module.shop[\"eu-central\"].aws_db_instance.invoices",
        Action::Destroy,
        values(
            &[
                ("identifier", text("invoices-prd"), absent()),
                (
                    "arn",
                    text("arn:aws:rds:eu-central-1:123456789012:db:invoices-prd"),
                    absent(),
                ),
                ("engine", text("postgres"), absent()),
                ("allocated_storage", json("500"), absent()),
                ("password", hidden(), absent()),
                (
                    "vpc_security_group_ids",
                    json("[\n\"sg-0a1b2c3d4e5f67890\",\n\"sg-1a1b2c3d4e5f67890\"\n]"),
                    absent(),
                ),
            ],
            0,
        ),
    );
    database.data = Some("database".to_owned());
    database.notes = vec!["known as identifier=invoices-prd, arn=arn:aws:rds:eu-central-1:123456789012:db:invoices-prd".to_owned()];
    let mut bucket = item(
        "aws_s3_bucket.receipts",
        Action::Destroy,
        values(&[("bucket", text("shop-prd-receipts"), absent())], 0),
    );
    bucket.data = Some("bucket".to_owned());
    let mut protected = item("aws_route53_zone.shop", Action::Destroy, None);
    protected.notes = vec!["protected: an apply refuses it".to_owned()];
    let mut changes = vec![
        protected,
        item(
            "kubernetes_manifest.policy",
            Action::Update,
            values(
                &[
                    (
                        "spec.rules",
                        json("[\n\"allow a\",\n\"allow b\"\n]"),
                        json("[\n\"allow b\",\n\"allow c\"\n]"),
                    ),
                    (
                        "spec.script",
                        text("#!/bin/sh\nset -eu\necho one\n"),
                        text("#!/bin/sh\nset -eu\necho two\n"),
                    ),
                    (
                        "metadata.labels[\"app.kubernetes.io/managed-by\"]",
                        text("argocd"),
                        text("terraform"),
                    ),
                    ("data.token", hidden(), hidden()),
                    ("status", json("{}"), unknown()),
                    ("empty", text(""), absent()),
                ],
                14,
            ),
        ),
        item(
            &format!("module.{long}.terraform_data.x[\"{HOSTILE}\"]"),
            Action::DestroyThenCreate,
            values(&[(&long, text(&long), text(HOSTILE))], 1),
        ),
        item(
            "terraform_data.turned[\"\u{202e}gpj.exe\u{200b}\"]",
            Action::CreateThenDestroy,
            values(
                &[(
                    "v",
                    text("a\u{202e}b\u{1b}[2K"),
                    text("\u{5d0}\u{5d1}\u{5d2} right to left"),
                )],
                0,
            ),
        ),
        item("aws_iam_user.gone", Action::Forget, None),
        item("aws_instance.kept", Action::CreateThenForget, None),
        item("terraform_data.summoned", Action::Unknown, None),
    ];
    for n in 0..9 {
        changes.push(item(
            &format!("aws_route53_record.host[{n}]"),
            Action::Create,
            values(
                &[
                    ("name", absent(), text(&format!("h{n}.example.com"))),
                    ("fqdn", absent(), unknown()),
                ],
                0,
            ),
        ));
    }
    let part = |heading: &str, tone: Tone, body: Body| Part {
        heading: heading.to_owned(),
        tone,
        body,
    };
    let lines = |lines: &[&str]| Body::Lines(lines.iter().map(|&line| line.to_owned()).collect());
    let row = |name: &str, count: &str| vec![name.to_owned(), count.to_owned()];
    Page {
        kind: "Preview of a destroy".to_owned(),
        target: "ShopDeploy/shop/prd".to_owned(),
        verdict: Verdict {
            tone: Tone::Grave,
            word: "Refused".to_owned(),
            error: Some(format!("the namespace shop-prd still lives, so the objects in it that the state forgets stay behind: remove it first, or leave them by --leave-behind; and {HOSTILE}")),
            last_line: "Previewed: ShopDeploy/shop/prd, in 12.4 s, and something speaks against it; nothing was changed. Next: see to what is named above, and run it again.".to_owned(),
        },
        warnings: vec!["apps.shop.stages.prd tracks release-1.4, and main was planned: no sync takes its commit".to_owned()],
        facts: vec![
            Fact::new("target", "ShopDeploy/shop/prd"),
            Fact::new("commit", "7cb69cdb6bfd3cb0bb621bde7e80baac83d9a8b9"),
            Fact::new("cluster", "the cluster of the context live"),
            Fact { name: "state".to_owned(), lines: vec![format!("argocd/ShopDeploy/{long}/prd/terraform.tfstate"), "lineage d3b5ae21-fcdd-81c9-8d46-c2c557b8f991, serial 42".to_owned(), "last written at 2026-01-02T03:04:05Z by hook <hook@example.com>".to_owned()] },
            Fact::new("digest", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        ],
        parts: vec![
            part("How much goes", Tone::Calm, Body::Table { head: ["Objects", "How many"].map(str::to_owned).into(), rows: vec![row("objects in the state", "31"), row("destroyed", "16"), row("of these hold data", "2"), row("forgotten, not destroyed", "12"), row("already gone", "1")] }),
            part("Not in use", Tone::Calm, lines(&["187 Applications in 2 instances, 0 match, 0 unproven"])),
            part("Data that is lost for good (2)", Tone::Grave, Body::Changes { changes: vec![database, bucket], left_out: 0 }),
            part("Destroyed as well", Tone::Calm, Body::Changes { changes, left_out: 3 }),
            part("Forgotten, not destroyed", Tone::Notice, lines(&["kubernetes_secret.db: Secret shop-prd/db", "the namespace shop-prd still lives: what is in it stays behind"])),
            part("Already gone, says the provider", Tone::Notice, lines(&["aws_s3_bucket.old: already gone, says the provider"])),
            part("Removed by commits", Tone::Notice, lines(&["argocd/ShopDeploy/shop/prd/terraform.tfstate, from the state repository", "shop/config/prd/values.yaml, from ShopDeploy's main"])),
        ],
        made: "Made at 2026-01-02T03:04:05Z by stagewright-destroy-stage 0.1.0. Sensitive values are hidden.".to_owned(),
    }
}
