//! From a model's name to a model: `script:PATH`, `script:demo`, `PROVIDER/MODEL`, or nothing at all.
//!
//! The name comes with where it was written, so that an error can point there. Two invariants: a name that is wrong is
//! never replaced by another model, and no key appears in a fault.

pub(crate) mod list;

use std::path::Path;
use std::sync::Arc;

use sluice_harness::seam::model::Model;
use sluice_providers::anthropic::{AnthropicModel, AnthropicOptions, OUTPUT_LIMIT};
use sluice_providers::http::{HttpModelConfig, Timeouts};
use sluice_providers::openai::OpenAiModel;
use sluice_providers::script::ScriptModel;
use sluice_providers::secret::Secret;

use crate::config::{Config, Dialect, Environment, HttpOptions, KeySource, Origin, Protocol, Setting};
use crate::fault::{Fault, nearest, words};

/// The variable that makes every script record its requests.
const RECORD: &str = "SLUICE_SCRIPT_RECORD";

/// A model, ready to be asked.
pub(crate) struct Resolved {
    /// The model.
    pub(crate) model: Arc<dyn Model>,
    /// What the user is told once, line by line: that no model was named, and how to name one.
    pub(crate) note: Option<Vec<String>>,
    /// The variables that hold keys of configured providers and of this model; commands that the model proposes do not
    /// inherit them.
    pub(crate) key_variables: Vec<String>,
}

/// The model that the configuration names. `demo` is the text of the built-in script. Blocks while it reads a script
/// or a key.
///
/// # Errors
/// When the name means nothing, the script cannot be used, or the key is missing (`auth`).
pub(crate) fn resolve(config: &Config, environment: &Environment, demo: &str) -> Result<Resolved, Fault> {
    let Some(name) = &config.model else {
        let model = built_in_script(environment, demo)?;
        return Ok(Resolved { model, note: Some(no_model_note()), key_variables: key_variables(config, None) });
    };
    let text = name.value.trim();
    if let Some(path) = text.strip_prefix("script:") {
        let model = match path {
            "demo" => built_in_script(environment, demo)?,
            "" => return Err(malformed(name, "names no script", "write script:PATH, or script:demo for a first look")),
            path => script(&name.origin, path, environment)?,
        };
        return Ok(Resolved { model, note: None, key_variables: key_variables(config, None) });
    }
    let (provider_name, model_name) = split(name, text, config)?;
    let Some(provider) = config.providers.get(provider_name) else {
        return Err(unknown_provider(name, provider_name, config, environment));
    };
    let model: Arc<dyn Model> = match &provider.protocol {
        Protocol::Script => script(&name.origin, model_name, environment)?,
        Protocol::Http { dialect, base_url, key, options } => {
            leaves_room(config, provider_name, &provider.origin, options)?;
            let api_key = key.as_ref().map(|source| read_key(name, source, environment)).transpose()?;
            let settings = HttpModelConfig {
                name: provider_name.to_owned(),
                model: model_name.to_owned(),
                base_url: base_url.clone(),
                api_key,
                api_key_env: key.as_ref().and_then(|source| source.variable.clone()),
                headers: Vec::new(),
                effort: options.effort.clone(),
                context_window: options.context_window,
                images: takes_images(*dialect, options),
                timeouts: timeouts(options),
            };
            let model: Result<Arc<dyn Model>, _> = match dialect {
                Dialect::OpenAi => OpenAiModel::new(settings).map(|model| Arc::new(model) as _),
                Dialect::Anthropic => {
                    let options = AnthropicOptions {
                        prompt_cache: options.prompt_cache.unwrap_or(true),
                        thinking_tokens: options.thinking_tokens,
                    };
                    AnthropicModel::new(settings, options).map(|model| Arc::new(model) as _)
                }
            };
            model.map_err(|error| {
                let remedy = format!("correct the provider `{provider_name}` ({})", provider.origin);
                Fault::config("config-provider", error.to_string(), remedy)
            })?
        }
    };
    Ok(Resolved { model, note: None, key_variables: key_variables(config, Some(provider_name)) })
}

/// Refuses a budget of reasoning that the output limit leaves no answer beside.
fn leaves_room(config: &Config, provider: &str, origin: &Origin, options: &HttpOptions) -> Result<(), Fault> {
    let Some(budget) = options.thinking_tokens else { return Ok(()) };
    let (limit, by) = match &config.max_output_tokens {
        Some(limit) => (limit.value, limit.origin.to_string()),
        None => (OUTPUT_LIMIT, "built in".to_owned()),
    };
    if budget < limit {
        return Ok(());
    }
    Err(Fault::config(
        "config-provider",
        format!(
            "{origin}: `thinking_tokens` of the provider `{provider}` is {budget}, and the output limit, which holds the \
             answer too, is {limit} ({by})"
        ),
        "lower `thinking_tokens`, or raise `limits.max_output_tokens`",
    ))
}

/// Whether the model that the configuration names takes images; a name that means nothing takes none.
pub(crate) fn named_takes_images(config: &Config) -> bool {
    let Some(name) = config.model.as_ref().map(|name| name.value.trim()) else { return true };
    let provider = name.split_once('/').and_then(|(provider, _)| config.providers.get(provider));
    match provider.map(|provider| &provider.protocol) {
        _ if name.starts_with("script:") => true,
        Some(Protocol::Script) => true,
        Some(Protocol::Http { dialect, options, .. }) => takes_images(*dialect, options),
        None => false,
    }
}

/// Whether a provider's models take images, said or not.
fn takes_images(dialect: Dialect, options: &HttpOptions) -> bool {
    options.images.unwrap_or(match dialect {
        Dialect::OpenAi => false,
        Dialect::Anthropic => true,
    })
}

fn timeouts(options: &HttpOptions) -> Timeouts {
    let usual = Timeouts::default();
    Timeouts {
        connect: usual.connect,
        first_byte: options.first_byte.unwrap_or(usual.first_byte),
        idle: options.idle.unwrap_or(usual.idle),
    }
}

/// The parts of `PROVIDER/MODEL`; what follows the first `/` is the provider's own.
fn split<'a>(name: &Setting<String>, text: &'a str, config: &Config) -> Result<(&'a str, &'a str), Fault> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok((provider, model)),
        _ => {
            let word = text.trim_matches('/');
            if config.providers.contains_key(word) {
                let remedy = format!("write {word}/MODEL, with the model's name at {word}");
                return Err(malformed(name, "names a provider but no model", &remedy));
            }
            let remedy = format!(
                "write script:PATH, script:demo or PROVIDER/MODEL, such as deepseek/deepseek-chat; the providers are {}",
                known(config)
            );
            Err(malformed(name, "names no model", &remedy))
        }
    }
}

fn malformed(name: &Setting<String>, what: &str, remedy: &str) -> Fault {
    Fault::config("model-unknown", format!("`{}` ({}) {what}", name.value, name.origin), remedy)
}

fn unknown_provider(name: &Setting<String>, provider: &str, config: &Config, environment: &Environment) -> Fault {
    let guess = nearest(provider, config.providers.keys().map(String::as_str));
    let guess = guess.map(|guess| format!("; did you mean `{guess}`?")).unwrap_or_default();
    let what = format!("names the provider `{provider}`, which is unknown{guess}");
    let remedy = if provider == "script" {
        "write script:PATH for a script".to_owned()
    } else {
        let file = environment.xdg("XDG_CONFIG_HOME", ".config").map(|dir| dir.join("sluice").join("config.toml"));
        let file = file.map_or_else(|| "config.toml".to_owned(), |file| file.display().to_string());
        format!(
            "the providers are {}; add another to {file} as [providers.{provider}] with kind, base_url and api_key_env",
            known(config)
        )
    };
    malformed(name, &what, &remedy)
}

fn known(config: &Config) -> String {
    config.providers.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn built_in_script(environment: &Environment, demo: &str) -> Result<Arc<dyn Model>, Fault> {
    let cwd = environment.cwd();
    let model = ScriptModel::from_text("demo", demo, cwd, record(environment)).map_err(Fault::internal)?;
    Ok(Arc::new(model))
}

fn script(origin: &Origin, path: &str, environment: &Environment) -> Result<Arc<dyn Model>, Fault> {
    let path = environment.cwd().join(origin.resolve(path, environment.home()));
    Ok(Arc::new(ScriptModel::load(&path, record(environment))?))
}

fn record(environment: &Environment) -> Option<std::path::PathBuf> {
    environment.variable(RECORD).map(|path| environment.cwd().join(path))
}

/// The key, from its variable or else its file.
fn read_key(name: &Setting<String>, source: &KeySource, environment: &Environment) -> Result<Secret, Fault> {
    let variable = source.variable.as_deref();
    if let Some(key) = variable.and_then(|variable| environment.variable(variable)).map(str::trim)
        && !key.is_empty()
    {
        return Ok(Secret::new(key));
    }
    let needs = format!("the model `{}` ({}) needs a key", name.value, name.origin);
    if let Some(file) = &source.file {
        return key_in(file, &needs);
    }
    let variable = variable.unwrap_or("api_key_env");
    let cause = format!("{needs}, and the variable {variable} is not set");
    Err(Fault::config("auth", cause, format!("set it: export {variable}=…")))
}

fn key_in(file: &Path, needs: &str) -> Result<Secret, Fault> {
    let missing = |why: String| {
        Fault::config(
            "auth",
            format!("{needs}, and {} {why}", file.display()),
            "put the key into that file, and nothing else",
        )
    };
    let text = std::fs::read_to_string(file).map_err(|error| missing(format!("cannot be read: {}", words(&error))))?;
    if text.trim().is_empty() { Err(missing("is empty".to_owned())) } else { Ok(Secret::new(text)) }
}

/// The variables of every configured provider, and of the one that is used.
fn key_variables(config: &Config, used: Option<&str>) -> Vec<String> {
    let mut variables: Vec<String> = Vec::new();
    for (name, provider) in &config.providers {
        let counts = provider.origin != Origin::BuiltIn || used == Some(name.as_str());
        if let (true, Protocol::Http { key: Some(KeySource { variable: Some(variable), .. }), .. }) =
            (counts, &provider.protocol)
            && !variables.contains(variable)
        {
            variables.push(variable.clone());
        }
    }
    variables
}

fn no_model_note() -> Vec<String> {
    [
        "no model is named, so the built-in script:demo answers; these two lines name a real one:",
        "  export DEEPSEEK_API_KEY=…",
        "  export SLUICE_MODEL=deepseek/deepseek-chat",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a failed test may panic"
    )]

    use tempfile::TempDir;

    use super::*;
    use crate::config::{Entry, load};

    const DEMO: &str = r#"{"steps":[{"text":"hello"}]}"#;

    fn folder(config: &str) -> TempDir {
        let folder = TempDir::new().unwrap();
        for (name, text) in [("home/.config/sluice/config.toml", config), ("repo/s.json", DEMO), ("repo/bad.json", "{")]
        {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    fn named(folder: &TempDir, model: Option<&str>, variables: &[(&str, &str)]) -> Result<Resolved, Fault> {
        let environment = Environment::made_up(folder.path(), variables);
        let flags: Vec<_> =
            model.map(|model| (Entry::Model(model.into()), Origin::Flag("--model"))).into_iter().collect();
        resolve(&load(&environment, &folder.path().join("repo"), &flags).unwrap(), &environment, DEMO)
    }

    #[track_caller]
    fn refused(config: &str, model: &str, expected: &str) {
        let folder = folder(config);
        let fault = named(&folder, Some(model), &[]).err().expect("the name is accepted");
        let said = fault.to_string().replace(&folder.path().display().to_string(), "");
        assert_eq!((said.as_str(), fault.exit_code()), (expected, 2));
    }

    fn called(resolved: &Resolved) -> String {
        let info = resolved.model.info();
        format!("{}/{}", info.provider, info.model)
    }

    #[test]
    fn without_a_name_the_demonstration_answers_and_says_how_to_name_a_model() {
        let resolved = named(&folder(""), None, &[]).unwrap();
        assert_eq!(called(&resolved), "script/demo");
        let note = resolved.note.unwrap();
        assert_eq!(note.len(), 3);
        assert!(note[1].contains("DEEPSEEK_API_KEY") && note[2].contains("SLUICE_MODEL"));
        assert!(resolved.key_variables.is_empty());
    }

    #[test]
    fn scripts_are_found_from_the_folder_that_the_name_was_written_for() {
        let own = folder("model = \"script:own.json\"\n");
        std::fs::write(own.path().join("home/.config/sluice/own.json"), DEMO).unwrap();
        assert_eq!(called(&named(&own, None, &[]).unwrap()), "script/own");
        assert_eq!(called(&named(&own, Some("script:s.json"), &[]).unwrap()), "script/s");
        assert_eq!(called(&named(&own, Some("script:demo"), &[]).unwrap()), "script/demo");
        assert_eq!(called(&named(&own, None, &[("SLUICE_MODEL", "script:s.json")]).unwrap()), "script/s");
        let plays = folder("[providers.plays]\nkind = \"script\"\n");
        assert_eq!(called(&named(&plays, Some("plays/s.json"), &[]).unwrap()), "script/s");
    }

    #[test]
    fn providers_are_built_in_or_configured_and_bring_their_key_variables() {
        let folder = folder(
            "[providers.mine]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key_env = \"MINE\"\n",
        );
        let keys = [("MINE", "m"), ("DEEPSEEK_API_KEY", "d")];
        let resolved = named(&folder, Some("mine/meta/llama"), &keys).unwrap();
        assert_eq!(
            (called(&resolved).as_str(), resolved.key_variables.as_slice()),
            ("mine/meta/llama", &["MINE".to_owned()][..])
        );
        let resolved = named(&folder, Some("deepseek/deepseek-chat"), &keys).unwrap();
        assert_eq!(called(&resolved), "deepseek/deepseek-chat");
        assert_eq!(resolved.key_variables, ["DEEPSEEK_API_KEY", "MINE"]);
        let resolved = named(&folder, Some("ollama/qwen3"), &[]).unwrap();
        assert_eq!(
            (called(&resolved).as_str(), resolved.key_variables.as_slice()),
            ("ollama/qwen3", &["MINE".to_owned()][..])
        );
        assert!(resolved.note.is_none());
    }

    #[test]
    fn a_name_that_means_nothing_is_one_sentence_with_the_nearest_and_the_remedy() {
        refused(
            "",
            "deepsek/deepseek-chat",
            "sluice: `deepsek/deepseek-chat` (--model) names the provider `deepsek`, which is unknown; did you mean \
             `deepseek`?\n  the providers are anthropic, deepseek, ollama, openai; add another to /home/.config/sluice/config.toml \
             as [providers.deepsek] with kind, base_url and api_key_env",
        );
        refused(
            "",
            "gpt-4o",
            "sluice: `gpt-4o` (--model) names no model\n  write script:PATH, script:demo or PROVIDER/MODEL, such as \
             deepseek/deepseek-chat; the providers are anthropic, deepseek, ollama, openai",
        );
        refused(
            "",
            "openai/",
            "sluice: `openai/` (--model) names a provider but no model\n  write openai/MODEL, with the model's name at \
             openai",
        );
        refused(
            "",
            "script:",
            "sluice: `script:` (--model) names no script\n  write script:PATH, or script:demo for a first look",
        );
        refused(
            "",
            "script/s.json",
            "sluice: `script/s.json` (--model) names the provider `script`, which is unknown\n  write script:PATH for a \
             script",
        );
    }

    #[test]
    fn a_script_that_cannot_be_used_is_named_with_its_place() {
        let folder = folder("");
        let missing = named(&folder, Some("script:none.json"), &[]).err().unwrap();
        assert!(missing.cause.contains("/repo/none.json"), "{}", missing.cause);
        let bad = named(&folder, Some("script:bad.json"), &[]).err().unwrap();
        assert!(bad.cause.contains("/repo/bad.json is not valid at line 1"), "{}", bad.cause);
        assert_eq!((missing.exit_code(), bad.exit_code()), (2, 2));
    }

    #[test]
    fn a_missing_key_is_named_by_its_variable_or_its_file() {
        refused(
            "",
            "deepseek/deepseek-chat",
            "sluice: the model `deepseek/deepseek-chat` (--model) needs a key, and the variable DEEPSEEK_API_KEY is not \
             set\n  set it: export DEEPSEEK_API_KEY=…",
        );
        let file = "[providers.mine]\nkind = \"openai\"\nbase_url = \"https://m\"\napi_key_file = \"~/key\"\n";
        refused(
            file,
            "mine/m",
            "sluice: the model `mine/m` (--model) needs a key, and /home/key cannot be read: no such file or \
             directory\n  put the key into that file, and nothing else",
        );
        let folder = folder(file);
        let key = folder.path().join("home/key");
        std::fs::write(&key, " \n").unwrap();
        assert_eq!(named(&folder, Some("mine/m"), &[]).err().unwrap().code, "auth");
        std::fs::write(&key, "secret-key\n").unwrap();
        assert!(named(&folder, Some("mine/m"), &[]).is_ok());
    }

    #[test]
    fn every_script_records_where_the_variable_says() {
        let folder = folder("");
        let environment = Environment::made_up(folder.path(), &[(RECORD, "out/r.jsonl")]);
        assert_eq!(record(&environment), Some(folder.path().join("repo/out/r.jsonl")));
        assert_eq!(record(&Environment::made_up(folder.path(), &[])), None);
    }
}
