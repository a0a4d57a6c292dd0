//! PermissionRequest: a hook answers in the person's place. Deny beats allow; silence leaves the question open.

use serde_json::Value;
use sluice_harness::json::Json;
use sluice_harness::permission::{Behaviour, Mode, Rule};
use sluice_harness::scene::Scene;

use super::effect;
use super::output::{Answer, Interrupt};

/// What all handlers together answered.
#[derive(Debug, Clone, Default)]
pub(crate) enum Effect {
    #[default]
    Silent,
    Allow {
        input: Option<Json>,
        updates: Vec<Value>,
    },
    Deny {
        message: String,
        interrupt: Interrupt,
    },
}

/// The first denial, else the first allowance, in configuration order.
pub(crate) fn merge(answers: &[effect::Answer<'_>]) -> Effect {
    let mut effect = Effect::Silent;
    for one in answers {
        if let Some(message) = &one.heard.blocking_failure {
            return Effect::Deny { message: message.clone(), interrupt: Interrupt::Nothing };
        }
        match one.heard.output.as_ref().and_then(|o| o.answer.clone()) {
            Some(Answer::Deny { message, interrupt }) => {
                let message = message.filter(|m| !m.is_empty());
                let message = message.unwrap_or_else(|| "Permission denied by hook".to_owned());
                return Effect::Deny { message, interrupt };
            }
            Some(Answer::Allow { input, updates }) if matches!(effect, Effect::Silent) => {
                effect = Effect::Allow { input, updates };
            }
            Some(Answer::Allow { .. }) | None => {}
        }
    }
    effect
}

/// Applies permission updates to the session; what could not be applied, in words for the user.
pub(crate) fn apply(scene: Scene<'_>, updates: &[Value]) -> Vec<String> {
    updates.iter().filter_map(|update| apply_one(scene, update).err()).collect()
}

/// The origin of rules that a hook adds.
const ORIGIN: &str = "PermissionRequest hook";

fn apply_one(scene: Scene<'_>, update: &Value) -> Result<(), String> {
    let store = &scene.session.permissions;
    let anchor = &scene.session.workspace_root;
    let text = |key: &str| update.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = text("type");
    match kind {
        "addRules" | "replaceRules" | "removeRules" => {
            let behaviour = match text("behavior") {
                "allow" => Behaviour::Allow,
                "ask" => Behaviour::Ask,
                "deny" => Behaviour::Deny,
                other => return Err(format!("the permission update {kind} names no behavior but `{other}`")),
            };
            let rules = rules(update)?;
            match kind {
                "addRules" => store.add_rules(ORIGIN, anchor, behaviour, rules),
                "replaceRules" => store.replace_rules(ORIGIN, anchor, behaviour, rules),
                _ => store.remove_rules(ORIGIN, behaviour, &rules),
            }
        }
        "setMode" => {
            let mode = text("mode").parse::<Mode>().map_err(|e| e.to_string())?;
            store.set_mode(mode).map_err(|e| e.to_string())?;
        }
        "addDirectories" | "removeDirectories" => {
            for directory in update.get("directories").and_then(Value::as_array).into_iter().flatten() {
                let path = scene.session.absolute(directory.as_str().unwrap_or_default().as_ref());
                if kind == "addDirectories" {
                    store.add_directory(path);
                } else {
                    store.remove_directory(&path);
                }
            }
        }
        other => return Err(format!("the permission update `{other}` is not known")),
    }
    match text("destination") {
        "" | "session" => Ok(()),
        other => Err(format!("the permission update {kind} counts for this session; it was not written to {other}")),
    }
}

fn rules(update: &Value) -> Result<Vec<Rule>, String> {
    let mut rules = Vec::new();
    for rule in update.get("rules").and_then(Value::as_array).into_iter().flatten() {
        let tool = rule.get("toolName").and_then(Value::as_str).unwrap_or_default();
        let text = match rule.get("ruleContent").and_then(Value::as_str) {
            Some(content) => format!("{tool}({content})"),
            None => tool.to_owned(),
        };
        rules.push(Rule::parse(&text).map_err(|e| e.to_string())?);
    }
    Ok(rules)
}
