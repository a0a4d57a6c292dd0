//! Names of servers and their tools, as models, rules and hook matchers know them.
//!
//! The spelling is Claude Code's: letters, digits, `_` and `-` stay, everything else becomes `_`. The invariant: from a
//! full name server and tool can be told apart, so that a rule for one server never speaks of another's tools.

/// The longest name that every provider of models takes.
pub const LONGEST: usize = 64;

fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

/// A server's part of its tools' names.
///
/// # Errors
/// Why the name cannot be used.
pub fn server_key(name: &str) -> Result<String, &'static str> {
    let key = plain(name);
    if key.is_empty() {
        return Err("it is empty");
    }
    if key.contains("__") || key.ends_with('_') {
        return Err("with `__` in it or `_` at its end, its tools could not be told from another server's");
    }
    Ok(key)
}

/// A tool's full name.
///
/// # Errors
/// Why it cannot be used.
pub fn full_name(server_key: &str, tool: &str) -> Result<String, String> {
    if tool.is_empty() {
        return Err("its name is empty".to_owned());
    }
    let name = format!("mcp__{server_key}__{}", plain(tool));
    if name.len() > LONGEST {
        return Err(format!(
            "its full name {name} is longer than {LONGEST} characters; give the server a shorter name"
        ));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelt_as_they_are_but_for_what_no_provider_takes() {
        let full = |server: &str, tool: &str| server_key(server).ok().and_then(|key| full_name(&key, tool).ok());
        assert_eq!(full("git-hub", "list-issues").as_deref(), Some("mcp__git-hub__list-issues"));
        assert_eq!(full("plugin:p:s", "a.b/c").as_deref(), Some("mcp__plugin_p_s__a_b_c"));
        assert_eq!(full("@scope/x", "t").as_deref(), Some("mcp___scope_x__t"));
        assert_eq!(full("s", "_t").as_deref(), Some("mcp__s___t"));
    }

    #[test]
    fn names_that_would_be_read_as_another_servers_are_refused() {
        for name in ["", "a__b", "a_", "a: b", "a!"] {
            assert!(server_key(name).is_err(), "{name}");
        }
        assert!(full_name("s", "").is_err());
        assert!(full_name("s", &"t".repeat(60)).is_err_and(|why| why.contains("shorter")));
    }
}
