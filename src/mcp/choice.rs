//! What settings say of a repository's servers: `enableAllProjectMcpServers`, `enabledMcpjsonServers` and
//! `disabledMcpjsonServers`, as Claude Code writes them.
//!
//! Switching off tightens and counts from every file. Accepting counts only from what is the user's own: a repository
//! cannot accept itself.

use serde_json::Value;

/// What has been said so far.
#[derive(Debug, Default)]
pub(super) struct Choice {
    all: bool,
    enabled: Vec<String>,
    disabled: Vec<String>,
}

/// Whose word it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    /// The user's.
    Own,
    /// The repository's.
    Repository,
}

/// What becomes of a repository's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The user has accepted it.
    Accepted,
    /// It was switched off.
    Off,
    /// Nobody has said anything.
    Open,
}

impl Choice {
    /// Hears one settings object; members of another type say nothing.
    pub(super) fn hear(&mut self, settings: &Value, voice: Voice) {
        let names = |key: &str| {
            let list = settings.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        self.disabled.extend(names("disabledMcpjsonServers"));
        if voice == Voice::Own {
            self.enabled.extend(names("enabledMcpjsonServers"));
            self.all |= settings.get("enableAllProjectMcpServers") == Some(&Value::Bool(true));
        }
    }

    /// What becomes of the repository's server of this name.
    pub(super) fn fate(&self, name: &str) -> Fate {
        let says = |list: &[String]| list.iter().any(|own| own == name);
        if says(&self.disabled) {
            Fate::Off
        } else if self.all || says(&self.enabled) {
            Fate::Accepted
        } else {
            Fate::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_repository_may_switch_its_servers_off_and_never_on() {
        let says = json!({ "enableAllProjectMcpServers": true, "enabledMcpjsonServers": ["a"], "disabledMcpjsonServers": ["b"] });
        let mut choice = Choice::default();
        choice.hear(&says, Voice::Repository);
        assert_eq!(["a", "b", "c"].map(|name| choice.fate(name)), [Fate::Open, Fate::Off, Fate::Open]);
        choice.hear(&says, Voice::Own);
        assert_eq!(["a", "b", "c"].map(|name| choice.fate(name)), [Fate::Accepted, Fate::Off, Fate::Accepted]);
    }
}
