//! The permission rules of the flags and of the settings files: which of them count, and what is wrong with the others.
//!
//! The grammar is the permission policy's. The invariant: what tightens counts whoever wrote it; what widens counts only
//! from a file that is trusted.

use std::path::Path;

use sluice_bridges::claude_code;
use sluice_bridges::{Problem, known_tools};
use sluice_harness::permission::{Behaviour, Mode, PermissionStore, Rule};

use crate::compose::{Findings, SessionPlan};
use crate::fault::nearest;

/// Puts the flags' rules and those of the settings files into force.
pub(crate) fn add_rules(
    permissions: &PermissionStore,
    plan: &SessionPlan,
    start_dir: &Path,
    from_settings: &[claude_code::PermissionEntry],
    findings: &mut Findings,
) {
    for (flag, rules) in [("--allowed-tools", &plan.allowed), ("--disallowed-tools", &plan.disallowed)] {
        findings.problems.extend(rules.iter().filter_map(|rule| names_no_tool(flag, rule)));
    }
    permissions.add_rules("--allowed-tools", start_dir, Behaviour::Allow, plan.allowed.clone());
    permissions.add_rules("--disallowed-tools", start_dir, Behaviour::Deny, plan.disallowed.clone());
    for dir in &plan.additional_dirs {
        permissions.add_directory(dir.clone());
    }
    for entry in from_settings {
        let origin = entry.origin.display().to_string();
        for (behaviour, rule) in entry_rules(entry, &mut findings.problems) {
            permissions.add_rules(&origin, &entry.anchor, behaviour, vec![rule]);
        }
    }
}

/// The rules of one settings file that count.
pub(crate) fn entry_rules(entry: &claude_code::PermissionEntry, problems: &mut Vec<Problem>) -> Vec<(Behaviour, Rule)> {
    let origin = entry.origin.display().to_string();
    let lists = [
        (Behaviour::Deny, &entry.deny),
        (Behaviour::Ask, &entry.ask),
        // What widens waits for trust; what tightens never does.
        (Behaviour::Allow, if entry.trusted { &entry.allow } else { &Vec::new() }),
    ];
    let mut rules = Vec::new();
    for (behaviour, texts) in lists {
        for text in texts {
            match Rule::parse(text) {
                Ok(rule) => {
                    problems.extend(names_no_tool(&origin, &rule));
                    rules.push((behaviour, rule));
                }
                Err(fault) => problems.push(bad_rule(&origin, text, &fault.to_string())),
            }
        }
    }
    if !entry.trusted && !entry.allow.is_empty() {
        problems.push(Problem::new(
            sluice_bridges::Severity::Info,
            "allow-rules-held-back",
            format!("{origin} came with the repository and has {}, held back.", counted(entry.allow.len())),
            "Give them with --allowed-tools to use them in this run, or accept all of the repository with --trust-workspace.",
        ));
    }
    rules
}

fn counted(rules: usize) -> String {
    if rules == 1 { "an allow rule".to_owned() } else { format!("{rules} allow rules") }
}

/// A rule for a tool that nobody has is a typing mistake more often than not, and would silently do nothing.
fn names_no_tool(origin: &str, rule: &Rule) -> Option<Problem> {
    let tool = rule.tool();
    if known_tools().contains(&tool) || tool.starts_with("mcp__") || tool.contains('*') {
        return None;
    }
    let guess = nearest(tool, known_tools().iter().copied());
    let guess = guess.map(|guess| format!(" Did you mean `{guess}`?")).unwrap_or_default();
    Some(Problem::new(
        sluice_bridges::Severity::Warning,
        "permission-rule-unknown-tool",
        format!("the permission rule `{rule}` in {origin} names `{tool}`, which is no tool that is known."),
        format!("Tool names are exact and case-sensitive.{guess}"),
    ))
}

fn bad_rule(origin: &str, text: &str, why: &str) -> Problem {
    Problem::new(
        sluice_bridges::Severity::Error,
        "permission-rule-invalid",
        format!("the permission rule {text:?} in {origin} is not valid: {why}."),
        "Write it as Tool or Tool(pattern), such as Bash(git status *).",
    )
}

/// The mode that trusted settings ask for; the last one wins.
pub(crate) fn claude_mode(found: &claude_code::Discovery) -> Option<Mode> {
    found
        .permissions
        .iter()
        .filter(|entry| entry.trusted)
        .filter_map(|entry| entry.default_mode.as_deref())
        .filter_map(|word| word.parse().ok())
        .next_back()
}

/// Puts the mode into force that was asked for, as far as the settings files let it be.
pub(crate) fn set_mode(
    permissions: &PermissionStore,
    wanted: Mode,
    from_settings: &[claude_code::PermissionEntry],
    findings: &mut Findings,
) {
    for entry in from_settings.iter().filter(|entry| entry.no_bypass) {
        permissions.forbid_bypass(&entry.origin.display().to_string());
    }
    // The store begins in `default`, and stays there when the mode is refused.
    if let Err(off) = permissions.set_mode(wanted) {
        findings.problems.push(Problem::new(
            sluice_bridges::Severity::Warning,
            "bypass-switched-off",
            format!("{off}; this session begins in default."),
            "Grant what may run unasked with --allowed-tools.",
        ));
    }
}
