//! The world of a test: temporary home and project, a session with real processes and files, and what was seen.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sluice_bridges::claude_code::{self, ClaudeCodeBridge};
use sluice_bridges::codex::{self, CodexBridge};
use sluice_bridges::{BridgeConfig, LiveHandlers, Problem, TrustDecision};
use sluice_harness::agent::{Agent, AgentSpec, Limits, RetryPolicy, TurnReport};
use sluice_harness::cancel::Cancel;
use sluice_harness::content::{Block, Message, Role, plain_text};
use sluice_harness::context::Context;
use sluice_harness::ids::SessionId;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::log::event::{FORMAT_VERSION, Header};
use sluice_harness::log::{SessionLog, now_rfc3339};
use sluice_harness::permission::{Mode, PermissionStore, PolicyPlugin};
use sluice_harness::point::Observer;
use sluice_harness::point::session::{SessionStart, SessionStartView, StartSource};
use sluice_harness::scene::{SessionFacts, SessionScene};
use sluice_harness::seam::host_files::HostFiles;
use sluice_harness::seam::live::{LiveEvent, LiveSink, Notice};
use sluice_harness::seam::model::{Model, ModelEvent, ModelFault, ModelInfo, ModelRequest, ModelStream, StopReason};
use sluice_harness::seam::process::{End, Environment, Keep, Owner, ProcessSpec, Processes, Program};
use sluice_harness::tool::{BodyView, CallCard, CallFacts, CallKind, Content, Tool, ToolFailure, Verdict};
use sluice_harness::{Fut, Plugin as _, registry};
use sluice_providers::host_files::LocalHostFiles;
use sluice_providers::process::LocalProcesses;
use tempfile::TempDir;

/// A watchdog for whatever a test awaits.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(60);

/// What one model exchange plays.
#[derive(Clone)]
pub(crate) enum Play {
    Text(String),
    Calls(Vec<(String, Value)>),
}

pub(crate) fn text(text: &str) -> Play {
    Play::Text(text.to_owned())
}

pub(crate) fn bash(command: &str) -> Play {
    Play::Calls(vec![("Bash".to_owned(), json!({ "command": command }))])
}

pub(crate) fn call(tool: &str, input: Value) -> Play {
    Play::Calls(vec![(tool.to_owned(), input)])
}

#[derive(Default)]
pub(crate) struct Player {
    plays: Mutex<VecDeque<Play>>,
    requests: Mutex<Vec<ModelRequest>>,
    calls: Mutex<usize>,
    effort: Option<String>,
}

struct Tape(VecDeque<ModelEvent>);

impl ModelStream for Tape {
    fn next(&mut self) -> Fut<'_, Option<Result<ModelEvent, ModelFault>>> {
        let next = self.0.pop_front().map(Ok);
        Box::pin(async move { next })
    }
}

impl Model for Player {
    fn info(&self) -> ModelInfo {
        ModelInfo { provider: "test".into(), model: "player".into(), effort: self.effort.clone(), context_window: None }
    }

    fn stream<'a>(&'a self, request: ModelRequest, _: &'a Cancel) -> Fut<'a, Result<Box<dyn ModelStream>, ModelFault>> {
        self.requests.lock().unwrap().push(request);
        // The last play repeats, as a model that always answers the same.
        let play = {
            let mut plays = self.plays.lock().unwrap();
            if plays.len() > 1 { plays.pop_front() } else { plays.front().cloned() }
        };
        let events = match play.expect("no plays") {
            Play::Text(text) => vec![ModelEvent::Text(text), ModelEvent::Stop(StopReason::EndTurn)],
            Play::Calls(calls) => {
                let mut events = Vec::new();
                for (name, input) in calls {
                    let mut count = self.calls.lock().unwrap();
                    *count += 1;
                    let id = Some(format!("toolu_{:04}", *count));
                    events.push(ModelEvent::ToolCall { id, name, arguments: input.to_string() });
                }
                events.push(ModelEvent::Stop(StopReason::ToolUse));
                events
            }
        };
        Box::pin(async move { Ok(Box::new(Tape(events.into())) as Box<dyn ModelStream>) })
    }
}

/// A stand-in of one of our tools: its name, and a body with the real one's values.
struct Stand(&'static str);

impl Tool for Stand {
    fn name(&self) -> &str {
        self.0
    }
    fn description(&self) -> &str {
        "a stand-in"
    }
    fn parameters(&self) -> Json {
        let properties = match self.0 {
            "Bash" => {
                r#"{"type":"object","properties":{"command":{"type":"string"},"description":{"type":"string"}},"required":["command"]}"#
            }
            "Write" => {
                r#"{"type":"object","properties":{"file_path":{"type":"string"},"content":{"type":"string"}},"required":["file_path","content"]}"#
            }
            _ => r#"{"type":"object","properties":{"x":{"type":"string"}}}"#,
        };
        Json::parse(properties).unwrap()
    }
    fn output(&self) -> Json {
        let schema = match self.0 {
            "Bash" => {
                r#"{"type":"object","properties":{"stdout":{"type":"string"},"stderr":{"type":"string"},"interrupted":{"type":"boolean"},"isImage":{"type":"boolean"},"noOutputExpected":{"type":"boolean"},"code":{"type":"integer"}},"required":["stdout","stderr","interrupted","isImage","noOutputExpected"]}"#
            }
            "Write" => {
                r#"{"type":"object","properties":{"type":{"type":"string"},"filePath":{"type":"string"}},"required":["type"]}"#
            }
            _ => {
                r#"{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"text":{"type":"string"}},"required":["type","text"]}}"#
            }
        };
        Json::parse(schema).unwrap()
    }
    fn normalise(&self, mut arguments: JsonObject, session: &SessionFacts) -> Result<JsonObject, String> {
        if let Some(path) = arguments.get("file_path").and_then(|p| p.view().as_str().map(str::to_owned)) {
            let path = session.absolute(Path::new(&path));
            arguments.put("file_path", &path.display().to_string()).map_err(|e| e.to_string())?;
        }
        Ok(arguments)
    }
    fn facts(&self, input: &Json) -> CallFacts {
        CallFacts { command: input.str_at("command").map(str::to_owned), ..CallFacts::default() }
    }
    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move {
            match self.0 {
                "Bash" => {
                    let spec = ProcessSpec {
                        program: Program::Shell {
                            shell: "/bin/sh".to_owned(),
                            line: body.input().str_at("command").unwrap().to_owned(),
                        },
                        owner: Owner::User,
                        cwd: body.scene().session.cwd(),
                        environment: Environment::default(),
                        stdin: Vec::new(),
                        deadline: Some(WATCHDOG),
                        grace: Duration::from_secs(1),
                        keep: Keep::Head(1 << 20),
                    };
                    let cancel = body.scene().cancel;
                    let out = body.lease::<dyn Processes>()?.run(spec, cancel).await;
                    let code = match out.end {
                        End::Exited(code) => code,
                        _ => 255,
                    };
                    let value = json!({
                        "stdout": out.stdout.text(), "stderr": out.stderr.text(),
                        "interrupted": false, "isImage": false, "noOutputExpected": false, "code": code,
                    });
                    Ok(Json::of(&value).unwrap())
                }
                "Write" => {
                    let path = PathBuf::from(body.input().str_at("file_path").unwrap());
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(&path, body.input().str_at("content").unwrap()).unwrap();
                    Ok(Json::of(&json!({ "type": "create", "filePath": path })).unwrap())
                }
                _ => {
                    let said = body.input().str_at("x").unwrap_or_default();
                    Ok(Json::of(&json!([{ "type": "text", "text": format!("echo:{said}") }])).unwrap())
                }
            }
        })
    }
    fn render(&self, _: &Json, value: &Json) -> Content {
        let shown = match value.view().get("stdout").and_then(Value::as_str) {
            Some("") => "(Bash completed with no output)".to_owned(),
            Some(stdout) => stdout.trim_end().to_owned(),
            None => value.text().to_owned(),
        };
        vec![Block::text(shown)]
    }
    fn verdict(&self, _: &Json, value: &Json) -> Verdict {
        match value.view().get("code").and_then(Value::as_i64) {
            None | Some(0) => Verdict::Succeeded,
            Some(code) => {
                let part =
                    |key: &str| value.str_at(key).map(str::trim_end).filter(|t| !t.is_empty()).map(str::to_owned);
                let mut lines = vec![format!("Exit code {code}")];
                lines.extend([part("stdout"), part("stderr")].into_iter().flatten());
                Verdict::Failed(lines.join("\n"))
            }
        }
    }
    fn present_call(&self, input: &Json) -> CallCard {
        CallCard { title: input.to_string(), kind: CallKind::Other, items: Vec::new(), locations: Vec::new() }
    }
}

#[derive(Default)]
struct Ear(Mutex<Vec<Notice>>);

impl LiveSink for Ear {
    fn send(&self, event: LiveEvent) -> Fut<'_, ()> {
        if let LiveEvent::Notice(notice) = event {
            self.0.lock().unwrap().push(notice);
        }
        Box::pin(std::future::ready(()))
    }
}

/// What a test sets up before its session.
pub(crate) struct World {
    _dir: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) config: BridgeConfig,
    pub(crate) mode: Mode,
    pub(crate) store: Arc<PermissionStore>,
    pub(crate) effort: Option<String>,
    pub(crate) tools: Vec<&'static str>,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        let (home, project) = (base.join("home"), base.join("project"));
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(&project).unwrap();
        let mut config = BridgeConfig::new(home.clone(), project.clone(), project.clone());
        config.trust = TrustDecision::TrustAll;
        Self {
            _dir: dir,
            home,
            project,
            config,
            mode: Mode::BypassPermissions,
            store: Arc::new(PermissionStore::new(Mode::BypassPermissions)),
            effort: None,
            tools: vec!["Bash", "Write", "mcp__srv__echo"],
        }
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.store.set_mode(mode).unwrap();
    }

    pub(crate) fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.project.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn script(&self, path: &str, text: &str) -> PathBuf {
        let path = self.file(path, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The project's settings of the Claude dialect.
    pub(crate) fn claude(&self, settings: &Value) {
        self.file(".claude/settings.json", &settings.to_string());
    }

    /// The user's hooks of the Codex dialect.
    pub(crate) fn codex(&self, hooks: &Value) {
        let path = self.home.join(".codex/hooks.json");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, json!({ "hooks": hooks }).to_string()).unwrap();
    }

    /// Whether a file of the project exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.project.join(path).exists()
    }

    /// The lines of a file of the project; none when it is missing.
    pub(crate) fn lines(&self, path: &str) -> Vec<String> {
        fs::read_to_string(self.project.join(path)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) async fn session(&self, plays: Vec<Play>) -> Session {
        let root = Context::root("test");
        root.provide::<dyn Processes>(Arc::new(LocalProcesses::new())).unwrap();
        root.provide::<dyn HostFiles>(Arc::new(LocalHostFiles::new())).unwrap();
        let player =
            Arc::new(Player { plays: Mutex::new(plays.into()), effort: self.effort.clone(), ..Player::default() });
        root.provide::<dyn Model>(Arc::<Player>::clone(&player)).unwrap();
        for tool in &self.tools {
            registry::register(&root, Arc::new(Stand(tool))).unwrap();
        }
        let config = Arc::new(self.config.clone());
        let files = LocalHostFiles::new();
        let claude = claude_code::discover(&config, &files).await;
        let codex = codex::discover(&config, &files).await;
        let mut problems = claude.problems;
        problems.extend(codex.problems);
        ClaudeCodeBridge::new(Arc::clone(&config), LiveHandlers::new(claude.handlers), claude.env)
            .mount(&root)
            .unwrap();
        CodexBridge::new(Arc::clone(&config), LiveHandlers::new(codex.handlers)).mount(&root).unwrap();
        PolicyPlugin::new(Some(self.home.clone())).mount(&root).unwrap();
        let kept = Kept::default();
        root.observe::<SessionStart>(kept.clone()).unwrap();
        let id = SessionId::fresh();
        let header = Header {
            r#type: "session".into(),
            version: FORMAT_VERSION,
            id: id.clone(),
            created_at: now_rfc3339(),
            cwd: self.project.clone(),
            parent: None,
        };
        let state = self.home.join("state");
        let log = SessionLog::create(&state.join("sessions"), header).unwrap();
        let session = Arc::new(SessionFacts::new(
            id,
            config.start_dir.clone(),
            config.workspace_root.clone(),
            state,
            Arc::clone(&self.store),
            player.info(),
        ));
        let ear = Arc::new(Ear::default());
        let agent = Agent::start(AgentSpec {
            context: root.child("agent").unwrap(),
            session,
            log,
            live: Arc::<Ear>::clone(&ear),
            system: "be brief".into(),
            limits: Limits::default(),
            retry: RetryPolicy { retries: 0, base: Duration::from_millis(1), cap: Duration::from_millis(1) },
            source: StartSource::Startup,
        });
        Session { agent, player, ear, problems, kept, _root: root }
    }
}

/// Keeps the surroundings of the session.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Option<SessionScene>>>);

impl Observer<SessionStart> for Kept {
    fn observe(&self, view: &SessionStartView<'_>) {
        *self.0.lock().unwrap() = Some(view.scene.clone());
    }
}

/// A running session and what was seen of it.
pub(crate) struct Session {
    pub(crate) agent: Agent,
    player: Arc<Player>,
    ear: Arc<Ear>,
    pub(crate) problems: Vec<Problem>,
    kept: Kept,
    _root: Context,
}

impl Session {
    pub(crate) async fn prompt(&self, text: &str) -> TurnReport {
        self.prompt_blocks(vec![Block::text(text)]).await
    }

    pub(crate) async fn prompt_blocks(&self, content: Vec<Block>) -> TurnReport {
        tokio::time::timeout(WATCHDOG, self.agent.prompt(content, &Cancel::new())).await.expect("the turn hangs")
    }

    /// The surroundings between turns.
    pub(crate) fn scene(&self) -> SessionScene {
        self.kept.0.lock().unwrap().clone().unwrap()
    }

    pub(crate) fn requests(&self) -> usize {
        self.player.requests.lock().unwrap().len()
    }

    /// The messages of a request.
    pub(crate) fn messages(&self, request: usize) -> Vec<Message> {
        self.player.requests.lock().unwrap().get(request).map(|r| r.messages.clone()).unwrap_or_default()
    }

    /// The messages that a model sees in the end.
    pub(crate) fn history(&self) -> Vec<Message> {
        self.agent.log().messages()
    }

    /// The texts of a role in the last request.
    pub(crate) fn seen(&self, role: Role) -> Vec<String> {
        let last = self.requests().saturating_sub(1);
        self.messages(last).iter().filter(|m| m.role == role).map(|m| plain_text(&m.content)).collect()
    }

    /// The tool results the model has, with whether each is an error.
    pub(crate) fn results(&self) -> Vec<(String, bool)> {
        results(&self.history())
    }

    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.ear.0.lock().unwrap().clone()
    }

    /// All notices as one text.
    pub(crate) fn said(&self) -> String {
        self.notices().iter().map(|n| format!("{:?} {}: {}\n", n.level, n.source, n.text)).collect()
    }

    pub(crate) async fn close(&self) {
        self.agent.close("other", Duration::from_secs(5)).await.unwrap();
    }
}

/// The tool results among messages.
pub(crate) fn results(messages: &[Message]) -> Vec<(String, bool)> {
    let blocks = messages.iter().flat_map(|m| &m.content);
    blocks
        .filter_map(|block| match block {
            Block::ToolResult { content, is_error, .. } => Some((plain_text(content), *is_error)),
            _ => None,
        })
        .collect()
}
