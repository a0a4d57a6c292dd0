//! The program from outside, before any session: help, usage errors, configuration errors, and looking at nothing.
//!
//! What a session does is tested elsewhere. Every test has folders of its own and hands the program a whole
//! environment.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail bluntly"
)]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

struct Place {
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

struct Said {
    exit: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["home", "work", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, variables: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn with(mut self, variable: &'static str, value: &str) -> Self {
        self.variables.push((variable, value.to_owned()));
        self
    }

    /// Runs the program with an empty stdin; the folder's own name is cut out of what it says.
    #[track_caller]
    fn run(&self, line: &[&str]) -> Said {
        let output = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .args(line)
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            text.replace(&self.folder.path().display().to_string(), "")
        };
        Said { exit: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

const CONFIG: &str = "home/.config/sluice/config.toml";

#[test]
fn every_command_has_help_with_an_example_on_stdout() {
    let place = Place::new();
    for line in [
        &["--help"][..],
        &["acp", "--help"],
        &["run", "--help"],
        &["-p", "--help"],
        &["demo", "--help"],
        &["sessions", "--help"],
        &["sessions", "list", "--help"],
        &["sessions", "show", "--help"],
        &["models", "--help"],
        &["hooks", "--help"],
        &["hooks", "list", "--help"],
    ] {
        let said = place.run(line);
        assert_eq!((said.exit, said.err.as_str()), (0, ""), "{line:?}");
        assert!(said.out.contains("Example") && !said.out.contains('\u{1b}'), "{line:?}: {}", said.out);
    }
}

#[test]
fn the_version_is_said() {
    let said = Place::new().run(&["--version"]);
    assert_eq!((said.exit, said.out), (0, format!("sluice {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn unknown_commands_and_flags_are_exit_2_and_touch_nothing() {
    let place = Place::new();
    for (line, named) in [
        (&["doctor"][..], "doctor"),
        (&["run", "hi", "--sandbox", "loose"], "--sandbox"),
        (&["hooks", "check"], "check"),
    ] {
        let said = place.run(line);
        assert_eq!((said.exit, said.out.as_str()), (2, ""), "{line:?}");
        assert!(said.err.contains(named), "{line:?}: {}", said.err);
    }
    assert!(!place.path("home/.local").exists());
}

#[test]
fn an_unknown_key_of_the_configuration_is_exit_2_with_file_line_and_the_nearest_key() {
    for line in [&["run", "hi"][..], &["-p", "hi"], &["hooks", "list"]] {
        let said = Place::new().file(CONFIG, "\nmodle = \"a/b\"\n").run(line);
        assert_eq!((said.exit, said.out.as_str()), (2, ""), "{line:?}");
        assert_eq!(
            said.err,
            "sluice: /home/.config/sluice/config.toml line 2: the key `modle` is unknown; did you mean `model`?\n  \
             correct or remove it; the keys at the top are model, hooks, permissions, notifications, sandbox, limits, model_retry, mcp, web, providers\n",
            "{line:?}"
        );
    }
}

#[test]
fn an_unknown_model_and_a_missing_key_are_exit_2_and_name_the_remedy() {
    let said = Place::new().run(&["run", "hi", "--model", "depseek/x"]);
    assert_eq!((said.exit, said.out.as_str()), (2, ""));
    assert!(said.err.contains("did you mean `deepseek`?"), "{}", said.err);

    let said = Place::new().with("SLUICE_MODEL", "deepseek/deepseek-chat").run(&["run", "hi"]);
    assert_eq!((said.exit, said.out.as_str()), (2, ""));
    assert!(said.err.contains("(SLUICE_MODEL)") && said.err.contains("DEEPSEEK_API_KEY"), "{}", said.err);
}

#[test]
fn models_are_listed_with_their_origin_and_the_one_that_would_be_used() {
    let config = "model = \"mine/m\"\n[providers.mine]\nkind = \"anthropic\"\nbase_url = \"http://127.0.0.1:1\"\n\
                  api_key_env = \"MINE\"\ncontext_window = 9\n[providers.openai]\napi_key_file = \"~/key\"\n";
    let place =
        Place::new().file(CONFIG, config).with("DEEPSEEK_API_KEY", "sk-hidden-1").file("home/key", "sk-hidden-2");
    let rows = |line: &[&str]| -> Vec<serde_json::Value> {
        let said = place.run(line);
        assert_eq!((said.exit, said.err.as_str()), (0, ""), "{line:?}");
        assert!(!said.out.contains("sk-hidden"), "{}", said.out);
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let listed = rows(&["models", "--json"]);
    let of = |provider: &str| listed.iter().find(|row| row["provider"] == provider).unwrap();
    let mine = serde_json::json!({
        "provider": "mine", "kind": "anthropic", "base_url": "http://127.0.0.1:1",
        "key": {"variable": "MINE", "file": null, "found": false}, "images": true, "context_window": 9,
        "source": "/home/.config/sluice/config.toml line 2",
    });
    assert_eq!(of("mine")["key"], mine["key"]);
    assert_eq!(of("mine").as_object().unwrap().len(), mine.as_object().unwrap().len());
    assert_eq!((&of("mine")["kind"], &of("mine")["images"]), (&mine["kind"], &mine["images"]));
    assert!(
        of("mine")["source"].as_str().unwrap().starts_with("/home/.config/sluice/config.toml line "),
        "{listed:#?}"
    );
    assert_eq!((&of("deepseek")["source"], &of("deepseek")["key"]["found"]), (&"built in".into(), &true.into()));
    assert_eq!((&of("openai")["key"]["found"], &of("openai")["images"]), (&true.into(), &true.into()));
    assert_eq!((&of("ollama")["key"], &of("ollama")["images"]), (&serde_json::Value::Null, &false.into()));
    let used = listed.last().unwrap();
    assert_eq!((&used["model"], &used["usable"]), (&"mine/m".into(), &false.into()));
    assert!(used["problem"].as_str().unwrap().contains("the variable MINE is not set"), "{used}");

    let used = rows(&["models", "--json", "--model", "deepseek/deepseek-chat"]).pop().unwrap();
    let expected = serde_json::json!({
        "model": "deepseek/deepseek-chat", "source": "--model", "usable": true, "problem": null,
    });
    assert_eq!(used, expected);
    let said = place.run(&["models"]).out;
    for text in ["https://api.anthropic.com", "DEEPSEEK_API_KEY (set)", "MINE (missing)", "not usable: "] {
        assert!(said.contains(text), "{text}: {said}");
    }
    let said = Place::new().run(&["models"]).out;
    assert!(said.ends_with("\nused: script:demo (no model is named)\n"), "{said}");
}

#[test]
fn sessions_of_an_empty_state_are_none_and_none_is_made() {
    let place = Place::new();
    let said = place.run(&["sessions", "list"]);
    assert_eq!((said.exit, said.out.as_str(), said.err.as_str()), (0, "no sessions yet\n", ""));
    let said = place.run(&["sessions", "list", "--json"]);
    assert_eq!((said.exit, said.out.as_str(), said.err.as_str()), (0, "", ""));
    let said = place.run(&["sessions", "show", "0199"]);
    assert_eq!((said.exit, said.out.as_str()), (2, ""));
    assert!(said.err.contains("`0199`") && said.err.contains("sluice sessions list"), "{}", said.err);
    assert!(!place.path("home/.local").exists());
}

#[test]
fn hooks_of_both_dialects_are_listed_for_the_folder() {
    let hook = |command: &str| {
        format!(
            r#"{{"hooks":{{"PreToolUse":[{{"matcher":"Bash","hooks":[{{"type":"command","command":"{command}"}}]}}]}}}}"#
        )
    };
    let place = Place::new()
        .file("home/.claude/settings.json", &hook("own"))
        .file("work/.claude/settings.json", &hook("theirs"))
        .file("home/.codex/hooks.json", &hook("codex"));
    let said = place.run(&["hooks", "list", "--json"]);
    assert_eq!(said.exit, 0);
    assert_eq!(said.err, "", "a held-back hook has its own row and is not said twice");
    let rows: Vec<serde_json::Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |key: &str| rows.iter().map(|row| row[key].to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(of("command"), r#""own" "theirs" "codex""#);
    assert_eq!(of("trust"), r#""owner" "held-back" "owner""#);
    assert_eq!(of("runs"), "true false true");
    assert!(of("why_not").contains("--trust-hooks"), "{}", said.out);
    let said = place.run(&["hooks", "list", "--event", "Stop"]);
    assert_eq!((said.exit, said.out.as_str()), (0, "no hooks are configured here for Stop\n"));
}

#[test]
fn a_home_that_cannot_hold_state_is_a_warning_at_most() {
    let place = Place::new().file("home/.local", "in the way");
    let said = place.run(&["run", "hi", "--model", "script:demo"]);
    assert_eq!(said.exit, 0, "{}", said.err);
    assert!(said.err.contains(".local/state/sluice cannot be used"), "{}", said.err);
    assert!(place.path("tmp").read_dir().unwrap().count() > 0);
}
