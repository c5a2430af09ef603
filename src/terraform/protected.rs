//! Which changes of a plan destroy what is protected.

use crate::protect::{Allowed, Protected, Protection, Stopped};

use super::changes::{Change, Changes};

/// Marks the changes that would destroy a protected resource, and gives those that the commit does not allow.
///
/// A replacement destroys in either order, and so does the end of a deposed object; an action that this version does not
/// know may. What is only dropped from the state is not destroyed, and what the provider reports as gone is so already. A
/// resource that is moved is protected under its new address and under the one by which the state knows it; it is allowed
/// under the new one, which is the one that Terraform destroys.
pub fn judge(changes: &mut Changes, protection: &Protection, allowed: &Allowed) -> Vec<Stopped> {
    let mut stopped = Vec::new();
    for change in changes.resources.iter_mut().filter(|c| c.action.destroys()) {
        let Some(found) = protected(change, protection) else {
            continue;
        };
        change.protected = Some(if allowed.names(&change.address) {
            Protected::Allowed
        } else {
            stopped.push(found);
            Protected::Refused
        });
    }
    stopped
}

fn protected(change: &Change, protection: &Protection) -> Option<Stopped> {
    let address = change.address.clone();
    if let Some(pattern) = protection.over(&address) {
        return Some(Stopped {
            address,
            known_as: None,
            pattern: pattern.clone(),
        });
    }
    let known_as = change.moved_from.clone()?;
    let pattern = protection.over(&known_as)?.clone();
    Some(Stopped {
        address,
        known_as: Some(known_as),
        pattern,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the plan's changes once they are judged, and what was stopped.
    fn judged(changes: &str, protect: &str, allow: &[&str]) -> (Vec<String>, Vec<String>) {
        let plan = format!(r#"{{"format_version": "1.2", {changes}}}"#);
        let mut changes = Changes::read(plan.as_bytes()).unwrap();
        let protection = Protection::from_variable(protect).unwrap();
        let allowed = Allowed::from_trailers(allow.iter().map(|a| ("Allow-Destroy", a)));
        let stopped = judge(&mut changes, &protection, &allowed);
        let lines = changes.resources.iter().map(ToString::to_string);
        let gone = changes.gone.iter().map(ToString::to_string);
        let stopped = stopped.iter().map(ToString::to_string);
        (lines.chain(gone).collect(), stopped.collect())
    }

    const EVERY_ACTION: &str = r#""resource_changes": [
        {"address": "a.create", "change": {"actions": ["create"]}},
        {"address": "a.update", "change": {"actions": ["update"]}},
        {"address": "a.destroy", "change": {"actions": ["delete"]}},
        {"address": "module.m.a.dc[0]", "change": {"actions": ["delete", "create"]}},
        {"address": "a.cd", "change": {"actions": ["create", "delete"]}},
        {"address": "a.forget", "change": {"actions": ["forget"]}},
        {"address": "a.cf", "change": {"actions": ["create", "forget"]}},
        {"address": "data.a.read", "change": {"actions": ["read"]}},
        {"address": "data.a.end", "change": {"actions": ["delete"]}},
        {"address": "a.moved", "previous_address": "a.old", "change": {"actions": ["no-op"]}},
        {"address": "a.left", "deposed": "0a1b2c3d", "change": {"actions": ["delete"]}},
        {"address": "a.new", "change": {"actions": ["delete", "summon"]}},
        {"address": "b.destroy", "change": {"actions": ["delete"]}}
    ], "resource_drift": [{"address": "a.gone", "change": {"actions": ["delete"]}}]"#;

    #[test]
    fn what_destroys_is_marked_and_stopped_and_nothing_else_is() {
        let (lines, stopped) = judged(EVERY_ACTION, "a", &["a.cd", "a.update"]);
        assert_eq!(
            lines,
            [
                "a.create: create",
                "a.update: update",
                "a.destroy: destroy (protected: an apply refuses it)",
                "module.m.a.dc[0]: replace (destroy then create) (protected: an apply refuses it)",
                "a.cd: replace (create then destroy) (protected, allowed by Allow-Destroy)",
                "a.forget: forget",
                "a.cf: replace (create then forget)",
                "data.a.read: read",
                "data.a.end: destroy",
                "a.moved: move from a.old",
                "a.left (deposed 0a1b2c3d): destroy (protected: an apply refuses it)",
                "a.new: delete and summon, an action that this version does not know (protected: an apply refuses it)",
                "b.destroy: destroy",
                "a.gone: already gone, says the provider",
            ]
        );
        assert_eq!(
            stopped,
            [
                "a.destroy (protected by a)",
                "module.m.a.dc[0] (protected by a)",
                "a.left (protected by a)",
                "a.new (protected by a)",
            ]
        );
    }

    #[test]
    fn without_a_pattern_that_matches_nothing_is_stopped() {
        for protect in ["[]", "c d.e module.x.*"] {
            let (lines, stopped) = judged(EVERY_ACTION, protect, &[]);
            assert!(stopped.is_empty(), "{stopped:?}");
            assert!(!lines.iter().any(|l| l.contains("protected")), "{lines:?}");
        }
    }

    #[test]
    fn a_move_does_not_lead_out_of_the_protection_and_is_allowed_by_the_new_address() {
        let moved = r#""resource_changes": [{"address": "b.new", "previous_address": "module.db.a.old",
            "change": {"actions": ["delete", "create"]}}]"#;
        for (protect, said) in [
            (
                "module.db.*",
                "b.new (as module.db.a.old protected by module.db.*)",
            ),
            ("a", "b.new (as module.db.a.old protected by a)"),
            ("b.new", "b.new (protected by b.new)"),
        ] {
            assert_eq!(judged(moved, protect, &["module.db.a.old"]).1, [said]);
            assert!(judged(moved, protect, &["b.new"]).1.is_empty());
        }
    }
}
