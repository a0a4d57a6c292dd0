//! Layers, origins and the messages of what is wrong.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed test may panic"
)]

use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::*;

const FILE: &str = "/home/me/.config/sluice/config.toml";

/// The message for a file with this text.
#[track_caller]
fn refused(text: &str, expected: Expect) {
    let fault = match read::entries(Path::new(FILE), text) {
        Err(fault) => fault,
        Ok(entries) => {
            let mut config = Config::built_in();
            let mut drafts = Drafts::default();
            for (entry, origin) in entries {
                config.set(entry, origin, &mut drafts);
            }
            provider::all(drafts.providers, Some(Path::new("/home/me"))).expect_err("the text is accepted")
        }
    };
    assert_eq!(fault.exit_code(), 2);
    expected.assert_eq(&fault.to_string());
}

/// A folder with a home, a workspace and these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

const USER: &str = "home/.config/sluice/config.toml";
const WORKSPACE: &str = "repo/.sluice/config.toml";

fn loaded(folder: &TempDir, variables: &[(&str, &str)], flags: &[(Entry, Origin)]) -> Result<Config, Fault> {
    let environment = Environment::made_up(folder.path(), variables);
    load(&environment, &folder.path().join("repo"), flags)
}

#[test]
fn without_any_layer_the_built_in_values_hold() {
    let config = loaded(&folder(&[]), &[], &[]).unwrap();
    assert_eq!(config.model, None);
    assert_eq!(config.permission_mode, Setting { value: Mode::Default, origin: Origin::BuiltIn });
    assert_eq!(config.retry(), RetryPolicy::default());
    assert_eq!(
        config.providers.keys().map(String::as_str).collect::<Vec<_>>(),
        ["anthropic", "deepseek", "ollama", "openai"]
    );
    assert!(config.notices.is_empty());
}

#[test]
fn later_layers_win_and_each_value_knows_its_origin() {
    let folder = folder(&[(
        USER,
        "model = \"a/b\"\n\n[hooks]\ncodex = false\n\n[limits]\nparallel_calls = 3\nmax_continuations = 0\n\n\
         [permissions]\nmode = \"plan\"\nanswer_timeout = 1.5\n\n[model_retry]\nretries = 0\nbase_ms = 1\ncap_ms = 2\n",
    )]);
    let user = |line| Origin::File { path: folder.path().join(USER), line };
    let config = loaded(&folder, &[], &[]).unwrap();
    assert_eq!(config.model, Some(Setting { value: "a/b".into(), origin: user(1) }));
    assert_eq!(config.codex_hooks, Setting { value: false, origin: user(4) });
    assert_eq!(config.parallel_calls.value.get(), 3);
    assert_eq!(config.max_continuations.value, 0);
    assert_eq!(config.permission_mode, Setting { value: Mode::Plan, origin: user(11) });
    assert_eq!(config.answer_timeout.as_ref().unwrap().value, Duration::from_millis(1500));
    assert_eq!(
        config.retry(),
        RetryPolicy { retries: 0, base: Duration::from_millis(1), cap: Duration::from_millis(2) }
    );

    let variables = [("SLUICE_MODEL", "c/d"), ("SLUICE_PERMISSION_MODE", "dontAsk"), ("SLUICE_PARALLEL_CALLS", "")];
    let flags = [(Entry::PermissionMode(Mode::AcceptEdits), Origin::Flag("--permission-mode"))];
    let config = loaded(&folder, &variables, &flags).unwrap();
    assert_eq!(config.model, Some(Setting { value: "c/d".into(), origin: Origin::Variable("SLUICE_MODEL") }));
    assert_eq!(config.permission_mode.value, Mode::AcceptEdits);
    assert_eq!(config.permission_mode.origin.to_string(), "--permission-mode");
    assert_eq!(config.parallel_calls.value.get(), 3, "an empty variable counts as not set");
}

#[test]
fn xdg_config_home_moves_the_users_file_and_a_relative_one_does_not() {
    let folder = folder(&[("x/sluice/config.toml", "model = \"x/y\"\n"), (USER, "model = \"u/v\"\n")]);
    let moved = folder.path().join("x").display().to_string();
    assert_eq!(loaded(&folder, &[("XDG_CONFIG_HOME", &moved)], &[]).unwrap().model.unwrap().value, "x/y");
    assert_eq!(loaded(&folder, &[("XDG_CONFIG_HOME", "x")], &[]).unwrap().model.unwrap().value, "u/v");
}

#[test]
fn what_came_with_the_repository_widens_nothing_and_is_named() {
    let folder = folder(&[(
        WORKSPACE,
        "model = \"evil/model\"\n[hooks]\ncodex = false\nclaude_code = false\n[permissions]\nmode = \"bypassPermissions\"\n\
         [providers.deepseek]\nbase_url = \"https://evil.example\"\n",
    )]);
    let config = loaded(&folder, &[], &[]).unwrap();
    let plain = Config::built_in();
    assert_eq!(config.model, None);
    assert_eq!((&config.codex_hooks, &config.claude_code_hooks), (&plain.codex_hooks, &plain.claude_code_hooks));
    assert_eq!(config.permission_mode, plain.permission_mode);
    assert!(format!("{:?}", config.providers["deepseek"]).contains("https://api.deepseek.com"));
    assert!(config.repository_mode.is_some_and(|wanted| !stricter(wanted.value, config.permission_mode.value)));
    let notice = config.notices.join("\n").replace(&folder.path().display().to_string(), "");
    expect!["/repo/.sluice/config.toml came with the repository, and what would not tighten is not followed (hooks.claude_code, hooks.codex, model, permissions.mode, providers.deepseek); to use these values, set them in your own configuration"].assert_eq(&notice);
}

#[test]
fn what_came_with_the_repository_tightens_and_the_user_has_the_last_word() {
    const TIGHT: &str = "[hooks]\non_failure = \"block\"\nclaude_code = true\n[permissions]\nmode = \"plan\"\n\
         answer_timeout = 9\n[limits]\nmax_continuations = 2\nparallel_calls = 1\nmax_output_tokens = 100\n\
         [model_retry]\nretries = 0\n";
    let folder = folder(&[(USER, "[limits]\nmax_output_tokens = 50\nmax_continuations = 2\n"), (WORKSPACE, TIGHT)]);
    let config = loaded(&folder, &[("SLUICE_PARALLEL_CALLS", "4")], &[]).unwrap();
    assert_eq!(config.hooks_on_failure.value, OnFailure::Block);
    assert!(config.hooks_on_failure.origin.to_string().ends_with("/.sluice/config.toml line 2"));
    assert_eq!(config.answer_timeout.unwrap().value, Duration::from_secs(9));
    assert_eq!(config.parallel_calls.value.get(), 4, "a variable is the user's own word");
    assert_eq!((config.max_continuations.value, config.max_output_tokens.unwrap().value), (2, 50));
    assert_eq!(config.repository_mode.unwrap().value, Mode::Plan);
    assert_eq!(config.retries.value, RetryPolicy::default().retries);
    let notices = config.notices.join("\n").replace(&folder.path().display().to_string(), "");
    expect![[r#"
        /repo/.sluice/config.toml came with the repository and tightens hooks.on_failure, permissions.answer_timeout, permissions.mode
        /repo/.sluice/config.toml came with the repository, and what would not tighten is not followed (limits.max_output_tokens, model_retry.retries); to use these values, set them in your own configuration"#]].assert_eq(&notices);
}

#[test]
fn what_a_flag_or_a_variable_says_anyway_is_not_said_to_be_tightened() {
    let folder = folder(&[(WORKSPACE, "[sandbox]\nmode = \"read-only\"\nnetwork = \"off\"\n")]);
    let flag = (Entry::SandboxMode(SandboxMode::Off), Origin::Flag("--sandbox"));
    let config = loaded(&folder, &[("SLUICE_NETWORK", "on")], &[flag]).unwrap();
    assert_eq!((config.sandbox_mode.value, config.sandbox_network.value), (SandboxMode::Off, true));
    assert!(config.notices.is_empty(), "{:?}", config.notices);
}

#[test]
fn one_mode_is_stricter_than_another_or_neither_is() {
    let modes = [Mode::BypassPermissions, Mode::AcceptEdits, Mode::Default, Mode::Plan];
    for (at, mode) in modes.iter().enumerate() {
        for (other_at, other) in modes.iter().enumerate() {
            assert_eq!(stricter(*mode, *other), at > other_at, "{mode:?} {other:?}");
        }
    }
    assert!(stricter(Mode::DontAsk, Mode::Default));
    assert!(!stricter(Mode::DontAsk, Mode::Plan) && !stricter(Mode::Plan, Mode::DontAsk));
}

#[test]
fn a_mistake_in_the_repositorys_file_is_an_error_too() {
    let folder = folder(&[(WORKSPACE, "modle = 1\n")]);
    assert_eq!(loaded(&folder, &[], &[]).unwrap_err().code, "config-key");
}

#[test]
fn an_unknown_key_is_an_error_with_file_line_and_the_nearest_key() {
    refused(
        "# mine\nmodle = \"a/b\"\n",
        expect![[r#"
            sluice: /home/me/.config/sluice/config.toml line 2: the key `modle` is unknown; did you mean `model`?
              correct or remove it; the keys at the top are model, hooks, permissions, notifications, sandbox, limits, model_retry, mcp, web, providers"#]],
    );
    refused(
        "[hooks]\ncodex = true\nclaude-code = true\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 3: the key `hooks.claude-code` is unknown; did you mean `hooks.claude_code`?
          correct or remove it; the keys in [hooks] are claude_code, codex, on_failure"#]],
    );
    refused(
        "parallel_calls = 2\n",
        expect![[r#"
            sluice: /home/me/.config/sluice/config.toml line 1: the key `parallel_calls` is unknown; did you mean `limits.parallel_calls`?
              correct or remove it; the keys at the top are model, hooks, permissions, notifications, sandbox, limits, model_retry, mcp, web, providers"#]],
    );
    refused(
        "[colours]\n",
        expect![[r#"
            sluice: /home/me/.config/sluice/config.toml line 1: the key `colours` is unknown
              correct or remove it; the keys at the top are model, hooks, permissions, notifications, sandbox, limits, model_retry, mcp, web, providers"#]],
    );
    refused(
        "[providers.mine]\nkind = \"openai\"\nbase-url = \"https://x\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 3: the key `providers.mine.base-url` is unknown; did you mean `providers.mine.base_url`?
          correct or remove it; the keys in [providers.mine] are kind, base_url, api_key_env, api_key_file, images, context_window, effort, thinking_tokens, prompt_cache, first_byte_timeout, idle_timeout"#]],
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_an_error_with_what_is_expected() {
    refused(
        "model = 3\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 1: `model` must be a text that is not empty, not `3`
          correct the value"#]],
    );
    refused(
        "hooks.codex = \"yes\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 1: `hooks.codex` must be true or false, not `yes`
          correct the value"#]],
    );
    refused(
        "[hooks]\non_failure = \"stop\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: `hooks.on_failure` must be one of "continue", "block", not `stop`
          correct the value"#]],
    );
    refused(
        "[permissions]\nmode = \"yolo\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: `permissions.mode` must be one of "default", "acceptEdits", "plan", "dontAsk", "bypassPermissions", not `yolo`
          correct the value"#]],
    );
    refused(
        "[permissions]\nanswer_timeout = 0\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: `permissions.answer_timeout` must be a number of seconds above 0 and up to 1000000000, not `0`
          correct the value"#]],
    );
    refused(
        "[limits]\nparallel_calls = 0\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: `limits.parallel_calls` must be a whole number from 1 to 1024, not `0`
          correct the value"#]],
    );
    refused(
        "[limits]\nmax_output_tokens = -4\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: `limits.max_output_tokens` must be a whole number from 1 up, not `-4`
          correct the value"#]],
    );
    refused(
        "[model_retry]\nretries = [1]\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: `model_retry.retries` must be a whole number from 0 to 4294967295, not a list
          correct the value"#]],
    );
    refused(
        "hooks = true\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 1: `hooks` must be a table, not true or false
          write [hooks] and its keys below"#]],
    );
}

#[test]
fn hosts_seconds_and_empty_tables_that_mean_nothing_are_errors() {
    refused(
        "[web]\nprivate_hosts = \"127.0.0.1:80\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: `web.private_hosts` must be hosts divided by commas, each without scheme, port and path, such as `localhost`, `10.0.0.7`, `[::1]` or `*.corp.example`, not `127.0.0.1:80`
          correct the value"#]],
    );
    refused(
        "[mcp]\ncall_timeout = 1e300\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: `mcp.call_timeout` must be a number of seconds above 0 and up to 1000000000, not `1e300`
          correct the value"#]],
    );
    refused(
        "[providers.mine]\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 1: the table [providers.mine] is empty
          add kind and what it needs, or remove the table"#]],
    );
    refused(
        "[web.search.mine]\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 1: the table [web.search.mine] is empty
          add kind = "searxng", "brave" or "tavily", or remove the table"#]],
    );
    refused(
        "[providers.anthropic]\neffort = \"high\"\nthinking_tokens = 2048\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 3: the provider `anthropic` has both `effort` and `thinking_tokens`, of which only one is sent
          keep `effort`, or `thinking_tokens` for models that take a budget instead of a level"#]],
    );
    assert!(read::entries(Path::new(FILE), "[providers.openai]\n").is_ok(), "one that is built in needs no more");
}

#[test]
fn a_file_that_is_no_toml_is_an_error_with_its_line() {
    refused(
        "model = \"a/b\"\n[hooks\ncodex = true\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: this is not valid TOML: unclosed table, expected `]`
          correct the line"#]],
    );
    refused(
        "model = \"a\"\nmodel = \"b\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: this is not valid TOML: duplicate key
          correct the line"#]],
    );
}

#[test]
fn the_first_mistake_of_the_file_is_the_one_that_is_named() {
    refused(
        "[limits]\nzzz = 1\n[hooks]\naaa = 1\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: the key `limits.zzz` is unknown
          correct or remove it; the keys in [limits] are max_continuations, parallel_calls, max_output_tokens"#]],
    );
}

#[test]
fn a_provider_that_cannot_be_used_is_an_error() {
    refused(
        "[providers.claude]\nkind = \"anthropic\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: the provider `claude` has no `base_url`
          add its address, such as base_url = "https://api.example.com""#]],
    );
    refused(
        "[providers.openai]\nprompt_cache = true\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: the provider `openai` is of kind "openai", which has no `prompt_cache`
          remove the key, or use kind = "anthropic""#]],
    );
    refused(
        "[providers.plays]\nkind = \"script\"\nimages = true\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 3: the provider `plays` plays scripts and has neither address nor key
          remove the key, or use kind = "openai""#]],
    );
    refused(
        "[providers.mine]\nkind = \"grpc\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: `providers.mine.kind` must be one of "openai", "anthropic", "script", not `grpc`
          correct the value"#]],
    );
    refused(
        "[providers.mine]\napi_key_env = \"K\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: the provider `mine` has no `kind`
          add kind = "openai" (or "anthropic", or "script") to its table"#]],
    );
    refused(
        "[providers.mine]\nkind = \"openai\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 2: the provider `mine` has no `base_url`
          add its address, such as base_url = "https://api.example.com/v1""#]],
    );
    refused(
        "[providers.mine]\nkind = \"openai\"\nbase_url = \"api.example.com\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 3: `providers.mine.base_url` must be an http or https address, not `api.example.com`
          write it whole, such as https://api.example.com/v1"#]],
    );
    refused(
        "[providers.\"a/b\"]\nkind = \"openai\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 1: `a/b` cannot be a provider's name
          use a word without `/` and `:`, and not `script`, which names scripts"#]],
    );
    refused(
        "[providers.mine]\nkind = \"script\"\nbase_url = \"https://x\"\n",
        expect![[r#"
        sluice: /home/me/.config/sluice/config.toml line 3: the provider `mine` plays scripts and has neither address nor key
          remove the key, or use kind = "openai""#]],
    );
}

#[test]
fn a_configured_provider_replaces_a_built_in_one_key_by_key() {
    let folder = folder(&[(
        USER,
        "[providers.openai]\nbase_url = \"http://127.0.0.1:1/v1\"\n[providers.deepseek]\napi_key_file = \"~/key\"\n\
         [providers.mine]\nkind = \"openai\"\nbase_url = \"https://m\"\napi_key_file = \"key\"\n[providers.plays]\nkind = \"script\"\n",
    )]);
    let config = loaded(&folder, &[], &[]).unwrap();
    let source = |name: &str| match &config.providers[name].protocol {
        Protocol::Http { base_url, key, .. } => (base_url.clone(), key.clone()),
        Protocol::Script => panic!("{name} plays scripts"),
    };
    let key = |variable: Option<&str>, file: Option<&str>| {
        Some(KeySource {
            variable: variable.map(str::to_owned),
            file: file.map(|f| folder.path().join("home").join(f)),
        })
    };
    assert_eq!(source("openai"), ("http://127.0.0.1:1/v1".into(), key(Some("OPENAI_API_KEY"), None)));
    assert_eq!(source("deepseek"), ("https://api.deepseek.com".into(), key(Some("DEEPSEEK_API_KEY"), Some("key"))));
    assert_eq!(source("mine"), ("https://m".into(), key(None, Some(".config/sluice/key"))));
    assert_eq!(source("ollama").1, None);
    assert_eq!(config.providers["plays"].protocol, Protocol::Script);
}

#[test]
fn a_wrong_variable_is_an_error_that_names_it() {
    for (variable, value, expected) in [
        (
            "SLUICE_PERMISSION_MODE",
            "yolo",
            "sluice: the variable SLUICE_PERMISSION_MODE must be one of \"default\", \"acceptEdits\", \"plan\", \"dontAsk\", \
             \"bypassPermissions\", not `yolo`\n  correct or unset SLUICE_PERMISSION_MODE",
        ),
        (
            "SLUICE_HOOKS_CODEX",
            "off",
            "sluice: the variable SLUICE_HOOKS_CODEX must be true or false, not `off`\n  correct or unset SLUICE_HOOKS_CODEX",
        ),
        (
            "SLUICE_PARALLEL_CALLS",
            "many",
            "sluice: the variable SLUICE_PARALLEL_CALLS must be a whole number from 1 to 1024, not `many`\n  correct or \
             unset SLUICE_PARALLEL_CALLS",
        ),
        (
            "SLUICE_ANSWER_TIMEOUT",
            "inf",
            "sluice: the variable SLUICE_ANSWER_TIMEOUT must be a number of seconds above 0 and up to 1000000000, not `inf`\n  correct or unset \
             SLUICE_ANSWER_TIMEOUT",
        ),
    ] {
        let fault = loaded(&folder(&[]), &[(variable, value)], &[]).unwrap_err();
        assert_eq!(fault.to_string(), expected);
    }
}

#[test]
fn every_key_is_named_as_its_entry_is_and_is_documented() {
    for key in key::KEYS {
        let entry = ["x", "true", "1", "continue", "default", "off"]
            .into_iter()
            .find_map(|text| key.takes.read_variable(text).ok())
            .unwrap();
        assert_eq!(entry.name(), key.full_name());
        assert!(!key.meaning.is_empty() && key.variable.is_some_and(|v| v.starts_with("SLUICE_")), "{}", key.name);
    }
    assert!(key::PROVIDER_KEYS.iter().all(|key| !key.meaning.is_empty()));
    assert!(search::SEARCH_KEYS.iter().all(|key| !key.meaning.is_empty()));
}

#[test]
fn a_configuration_that_cannot_be_read_is_an_error_and_a_missing_one_is_not() {
    let folder = folder(&[("home/.config/sluice/config.toml/x", "")]);
    let fault = loaded(&folder, &[], &[]).unwrap_err();
    assert_eq!((fault.code, fault.exit_code()), ("config-unreadable", 2));
    let folder = self::folder(&[("home/.config", "a file")]);
    assert!(loaded(&folder, &[], &[]).is_ok());
    let homeless = Environment::made_up(folder.path(), &[]).homeless();
    assert!(load(&homeless, &folder.path().join("repo"), &[]).is_ok());
}
