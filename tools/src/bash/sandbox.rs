//! What the model is told of the sandbox, and how it asks to leave it for one call.
//!
//! Pure. Whether a wish is granted is the permission policy's affair; what a policy means on this machine is the process
//! seam's.

use serde_json::json;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::seam::sandbox::{SandboxMode, SandboxPolicy};
use sluice_harness::tool::Escalation;

/// The input that names the wider mode.
pub(super) const MODE: &str = "sandbox_permissions";
/// The input that says why.
pub(super) const WHY: &str = "justification";

/// The modes that are wider than a policy, narrowest first.
pub(super) fn wider(policy: &SandboxPolicy) -> Vec<SandboxMode> {
    [SandboxMode::WorkspaceWrite, SandboxMode::Off]
        .into_iter()
        .filter(|mode| *mode > policy.mode || (*mode == SandboxMode::Off && policy.confines()))
        .collect()
}

/// The two inputs, where there is a sandbox to leave.
pub(super) fn parameters(policy: &SandboxPolicy) -> serde_json::Map<String, serde_json::Value> {
    let modes: Vec<String> = wider(policy).iter().map(ToString::to_string).collect();
    let mut parameters = serde_json::Map::new();
    if !modes.is_empty() {
        let mode = "Only after the sandbox made a command fail that cannot do without: a wider one for this call alone. \
                    A person is asked. Needs justification.";
        let why = "With sandbox_permissions: why the command must, in one sentence for the person who is asked.";
        parameters.insert(MODE.to_owned(), json!({"type": "string", "enum": modes, "description": mode}));
        parameters.insert(WHY.to_owned(), json!({"type": "string", "description": why}));
    }
    parameters
}

/// Checks the two inputs. The four refusals of R-416 are told apart.
pub(super) fn check(arguments: &JsonObject, policy: &SandboxPolicy) -> Result<(), String> {
    let text = |key: &str| arguments.get(key).and_then(|value| value.view().as_str().map(str::to_owned));
    let (mode, why) = match (text(MODE), text(WHY)) {
        (None, None) => return Ok(()),
        (Some(mode), Some(why)) => (mode, why),
        (Some(_), None) => return Err(format!("{MODE} needs a {WHY}: say why in one sentence, or leave both out")),
        (None, Some(_)) => return Err(format!("{WHY} is for {MODE}: give both, or leave both out")),
    };
    if why.trim().is_empty() {
        return Err(format!("{WHY} is blank; say in one sentence why the command must leave the sandbox"));
    }
    let asked: SandboxMode = mode.parse().map_err(|unknown| format!("{MODE}: {unknown}"))?;
    let wider = wider(policy);
    if wider.contains(&asked) {
        return Ok(());
    }
    let has = policy.mode;
    Err(match wider.as_slice() {
        [] => format!("{MODE} is `{asked}`, and there is no sandbox to leave; leave {MODE} and {WHY} out"),
        _ => format!("{MODE} is `{asked}`, which is no wider than the sandbox `{has}`; leave it out, or ask for `off`"),
    })
}

/// The wish of an input that was checked.
pub(super) fn wish(input: &Json, policy: &SandboxPolicy) -> Option<Escalation> {
    let to: SandboxMode = input.str_at(MODE)?.parse().ok()?;
    let justification = input.str_at(WHY)?.trim().to_owned();
    Some(Escalation { to, justification, required: policy.must_confine() })
}

/// The policy for a call whose wish was granted.
pub(super) fn widened(policy: &SandboxPolicy, to: SandboxMode) -> SandboxPolicy {
    match to {
        SandboxMode::Off => SandboxPolicy::off(),
        SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => SandboxPolicy { mode: to, ..policy.clone() },
    }
}

/// Words of programs that were refused a file, a signal or a call.
const REFUSED: &[&str] = &["permission denied", "operation not permitted", "permissionerror", "eacces", "eperm"];
/// Words of programs that did not get at the network.
const UNREACHED: &[&str] = &[
    "could not resolve host",
    "temporary failure in name resolution",
    "network is unreachable",
    "failed to lookup address",
    "getaddrinfo",
    "socket: operation not permitted",
    "couldn't connect to server",
    "failed to connect",
];

/// The lines that say that the sandbox may be why a command failed; `None` when nothing speaks for it. The system does
/// not tell who refused, so this goes by what the command printed.
pub(super) fn marker(policy: &SandboxPolicy, outputs: &[&str]) -> Option<String> {
    let text = outputs.join("\n").to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let what = if !policy.network && says(UNREACHED) {
        "network access"
    } else if policy.confines() && says(REFUSED) {
        if policy.mode == SandboxMode::Off { "network access" } else { "file access" }
    } else {
        return None;
    };
    let modes: Vec<String> = wider(policy).iter().map(|mode| format!("\"{mode}\"")).collect();
    Some(format!(
        "[sandbox: {what} denied under {} mode]\n\
         [Going by its words, the sandbox may be why this failed. If the command cannot do without, ask for this one \
         call with {MODE} {} and a {WHY}.]",
        policy.mode,
        modes.join(" or ")
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

    use super::*;

    fn policy(mode: SandboxMode, network: bool) -> SandboxPolicy {
        SandboxPolicy { mode, network, ..SandboxPolicy::off() }
    }

    fn checked(policy: &SandboxPolicy, input: &serde_json::Value) -> String {
        let arguments = Json::parse(&input.to_string()).unwrap().object().unwrap();
        check(&arguments, policy).err().unwrap_or_default()
    }

    #[test]
    fn r_416_a_wish_has_both_parts_and_is_strictly_wider_and_four_refusals_are_told_apart() {
        let (read, write) = (policy(SandboxMode::ReadOnly, true), policy(SandboxMode::WorkspaceWrite, true));
        let both = |mode: &str| json!({"command": "x", MODE: mode, WHY: "must"});
        for (policy, input, part) in [
            (&write, json!({"command": "x"}), ""),
            (&write, both("off"), ""),
            (&read, both("workspace-write"), ""),
            (&write, json!({"command": "x", MODE: "off"}), "needs a justification"),
            (&write, json!({"command": "x", WHY: "must"}), "is for sandbox_permissions"),
            (&write, json!({"command": "x", MODE: "off", WHY: " \t"}), "is blank"),
            (&write, both("all"), "is no sandbox mode"),
            (&write, both("workspace-write"), "is no wider"),
            (&write, both("read-only"), "is no wider"),
            (&policy(SandboxMode::Off, true), both("off"), "there is no sandbox"),
            (&policy(SandboxMode::Off, false), both("off"), ""),
        ] {
            let said = checked(policy, &input);
            assert!(said.contains(part) && said.is_empty() == part.is_empty(), "{input}: {said}");
        }
    }

    #[test]
    fn r_415_the_marker_is_a_line_of_its_own_and_only_where_something_speaks_for_it() {
        let (write, offline) = (policy(SandboxMode::WorkspaceWrite, true), policy(SandboxMode::ReadOnly, false));
        for (policy, output, first) in [
            (
                &write,
                "touch: cannot touch '/x': Permission denied",
                Some("file access denied under workspace-write mode"),
            ),
            (&write, "kill: Operation not permitted", Some("file access denied under workspace-write mode")),
            (&write, "curl: (6) Could not resolve host: x", None),
            (&write, "no such file", None),
            (&offline, "curl: (6) Could not resolve host: x", Some("network access denied under read-only mode")),
            (&policy(SandboxMode::Off, true), "Permission denied", None),
            (&policy(SandboxMode::Off, false), "Operation not permitted", Some("network access denied under off mode")),
        ] {
            let line = marker(policy, &[output]).map(|text| text.lines().next().unwrap_or_default().to_owned());
            assert_eq!(line, first.map(|words| format!("[sandbox: {words}]")), "{output}");
        }
    }
}
