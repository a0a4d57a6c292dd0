//! The composition root: the only place that picks providers, tools, policies and bridges, and joins them to a session.
//!
//! Every front end opens its sessions here, so that hooks, rules and tools are the same in all of them. What settings
//! say that does not work as written is returned as [`Findings`], for each front end to show on its own channel.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sluice_bridges::claude_code::{self, ClaudeCodeBridge};
use sluice_bridges::codex::{self, CodexBridge};
use sluice_bridges::{BridgeConfig, Problem};
use sluice_harness::Plugin;
use sluice_harness::agent::{Agent, AgentSpec, Limits, RetryPolicy};
use sluice_harness::context::{Context, Rank};
use sluice_harness::ids::SessionId;
use sluice_harness::log::{Header, RepairReport, SessionLog, event::FORMAT_VERSION, now_rfc3339};
use sluice_harness::permission::{Mode, PermissionStore, PolicyPlugin, Rule};
use sluice_harness::pipeline::TimeoutPolicy;
use sluice_harness::point::session::StartSource;
use sluice_harness::registry;
use sluice_harness::scene::SessionFacts;
use sluice_harness::seam::files::Files;
use sluice_harness::seam::host_files::HostFiles;
use sluice_harness::seam::live::LiveSink;
#[cfg(feature = "mcp")]
use sluice_harness::seam::mcp::McpServers;
use sluice_harness::seam::model::Model;
use sluice_harness::seam::process::Processes;
use sluice_harness::seam::sandbox::SandboxPolicy;
use sluice_harness::seam::search::Search;
use sluice_harness::seam::settings::Settings;
use sluice_providers::files::{FencedFiles, LocalFiles};
use sluice_providers::host_files::LocalHostFiles;
use sluice_providers::process::LocalProcesses;
use sluice_providers::search::LocalSearch;
use sluice_tools::mcp::McpTools;
use sluice_tools::{BashConfig, Jobs, JobsPlugin, ObservationPlugin, ShellFolder};

use crate::config::stricter;
use crate::fault::Fault;
use crate::live_settings::{self, LiveSettings};
use crate::mcp::McpPlan;
use crate::settings_gate::SettingsGate;
use crate::settings_rules::{add_rules, claude_mode, set_mode};
use crate::web::Web;

/// How long disposal waits for what is still running.
pub(crate) const DISPOSE_GRACE: Duration = Duration::from_millis(500);

/// This very program, whatever has become of the file that it was started from.
const OURSELVES: &str = "/proc/self/exe";

/// Which session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// A new one that starts in this folder; absolute.
    New(PathBuf),
    /// One that is in the log, in the folder it started in.
    Resume(SessionId),
}

/// Which dialects' hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialects {
    pub(crate) claude_code: bool,
    pub(crate) codex: bool,
}

/// All that a session is opened with; paths absolute, words parsed.
#[derive(Clone)]
pub(crate) struct SessionPlan {
    pub(crate) which: Which,
    /// The folder of session logs.
    pub(crate) sessions: PathBuf,
    pub(crate) additional_dirs: Vec<PathBuf>,
    pub(crate) model: Arc<dyn Model>,
    /// Names of variables that hold keys of configured providers; commands of the model do not inherit them.
    pub(crate) key_variables: Vec<String>,
    /// Who fetches pages and who searches.
    pub(crate) web: Web,
    /// Set when a flag, the environment or the configuration names a mode.
    pub(crate) mode: Option<Mode>,
    /// The mode that the repository wants; counts where it is stricter than the one in force.
    pub(crate) at_most: Option<Mode>,
    pub(crate) allowed: Vec<Rule>,
    pub(crate) disallowed: Vec<Rule>,
    pub(crate) dialects: Dialects,
    /// What the bridges are told; its folders are filled in here.
    pub(crate) bridges: BridgeConfig,
    /// How long a session may wait for a prompt before a person is called; `None` where nobody is there.
    pub(crate) idle_notice: Option<Duration>,
    /// The MCP servers.
    pub(crate) mcp: McpPlan,
    /// What commands of the model are held back from; the session's own folders are filled in here.
    pub(crate) sandbox: SandboxPolicy,
    pub(crate) limits: Limits,
    pub(crate) retry: RetryPolicy,
    pub(crate) system: SystemPrompt,
    pub(crate) live: Arc<dyn LiveSink>,
    /// What stands between the tools and the files on disk.
    pub(crate) files_over: Option<FilesOver>,
}

/// Makes a session's files of those on disk.
pub(crate) type FilesOver = Arc<dyn Fn(Arc<dyn Files>, &SessionId) -> Arc<dyn Files> + Send + Sync>;

/// The system prompt as the user wants it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SystemPrompt {
    /// In place of the built-in one.
    pub(crate) instead: Option<String>,
    /// After it.
    pub(crate) append: Option<String>,
}

impl SystemPrompt {
    /// Adds a paragraph to what comes after it.
    pub(crate) fn add(&mut self, text: &str) {
        self.append = Some(match self.append.take() {
            Some(before) => format!("{before}\n\n{text}"),
            None => text.to_owned(),
        });
    }
}

/// What the settings say that is not as written, and what waits for trust.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Problems, worst first as found.
    pub(crate) problems: Vec<Problem>,
    /// What the log had to be repaired of.
    pub(crate) repair: Option<String>,
}

/// An open session.
pub(crate) struct Session {
    pub(crate) agent: Agent,
    pub(crate) findings: Findings,
    /// The names of its MCP servers.
    pub(crate) mcp_servers: Vec<String>,
    root: Context,
    processes: Arc<LocalProcesses>,
}

/// Opens a session; `mount` adds what only this front end has, such as somebody who can be asked.
///
/// # Errors
/// A [`Fault`] when the folder, the log or a rule is not usable; nothing is left behind then.
pub(crate) async fn open(
    plan: SessionPlan,
    mount: impl FnOnce(&Context) -> Result<(), sluice_harness::context::ContextFault>,
) -> Result<Session, Fault> {
    let mut findings = Findings::default();
    let host_files: Arc<dyn HostFiles> = Arc::new(LocalHostFiles::new());

    let (log, id, start_dir, source) = match &plan.which {
        Which::New(dir) => {
            check_folder(dir, "make it first, or name another one with --cwd").await?;
            let id = SessionId::fresh();
            let header = Header {
                r#type: "session".to_owned(),
                version: FORMAT_VERSION,
                id: id.clone(),
                created_at: now_rfc3339(),
                cwd: dir.clone(),
                parent: None,
            };
            (SessionLog::create(&plan.sessions, header)?, id, dir.clone(), StartSource::Startup)
        }
        Which::Resume(id) => {
            let (log, repair) = SessionLog::open(&plan.sessions, id)?;
            if !repair.is_clean() {
                findings.repair = Some(repaired(&repair));
            }
            let dir = log.handle().header().cwd;
            check_folder(&dir, "the session began there: make it again, or begin a new session elsewhere").await?;
            (log, id.clone(), dir, StartSource::Resume)
        }
    };
    for dir in &plan.additional_dirs {
        if !tokio::fs::metadata(dir).await.is_ok_and(|meta| meta.is_dir()) {
            return Err(Fault::usage(
                "additional-folder",
                format!("{} (--add-dir) is not a folder that exists", dir.display()),
                "make it first, or name another one",
            ));
        }
    }
    let home = plan.bridges.home.clone();
    let workspace_root = sluice_bridges::find_workspace_root(&*host_files, &start_dir, &home).await;
    let config = Arc::new(BridgeConfig {
        start_dir: start_dir.clone(),
        workspace_root: workspace_root.clone(),
        codex_shell: codex::codex_shell(&*host_files, rustix::process::getuid().as_raw()).await,
        ..plan.bridges.clone()
    });

    // Deny and ask rules of the settings files hold whatever is switched off.
    let begun = live_settings::begin(&config, &*host_files).await;
    let claude = &begun.claude;
    let permissions = Arc::new(PermissionStore::new(Mode::Default).following(sluice_providers::files::real_path));
    add_rules(&permissions, &plan, &start_dir, &claude.permissions, &mut findings);
    let mode = plan.mode.or(claude_mode(claude)).unwrap_or(Mode::Default);
    let mode = plan.at_most.filter(|wanted| stricter(*wanted, mode)).unwrap_or(mode);
    set_mode(&permissions, mode, &claude.permissions, &mut findings);

    let mut session = SessionFacts::new(
        id.clone(),
        start_dir.clone(),
        workspace_root.clone(),
        plan.sessions.join(id.as_str()),
        Arc::clone(&permissions),
        plan.model.info(),
    );
    session.additional_dirs = plan.additional_dirs.clone();
    // A shell goes on where it was left, if that folder is still there.
    if let Some(left) = log.handle().last::<ShellFolder>()
        && tokio::fs::metadata(&left.cwd).await.is_ok_and(|m| m.is_dir())
    {
        session.set_cwd(left.cwd);
    }

    let root = Context::root("session");
    let processes = Arc::new(LocalProcesses::warded_by(PathBuf::from(OURSELVES)));
    root.provide::<dyn Processes>(Arc::<LocalProcesses>::clone(&processes))?;
    let policy = session_policy(&plan, &start_dir, &workspace_root, &home).await?;
    findings.problems.extend(crate::sandbox::unenforced(&policy));
    let local = LocalFiles::new();
    let files: Arc<dyn Files> = if crate::sandbox::fences_files(&policy) {
        Arc::new(FencedFiles::new(Arc::new(local), &policy))
    } else {
        Arc::new(local)
    };
    root.provide::<dyn Files>(
        plan.files_over.as_ref().map_or_else(|| Arc::clone(&files), |over| over(files.clone(), &id)),
    )?;
    root.provide::<dyn Search>(Arc::new(LocalSearch::new()))?;
    root.provide::<dyn HostFiles>(Arc::clone(&host_files))?;
    root.provide::<dyn Model>(Arc::clone(&plan.model))?;
    root.provide(Arc::clone(&plan.web.fetch))?;
    root.provide(Arc::clone(&plan.web.search))?;

    let jobs = Arc::new(Jobs::default());
    let gated = policy.clone();
    for tool in sluice_tools::builtin(bash_config(&plan, claude, policy, Arc::clone(&jobs))) {
        // What could never find anything is not offered.
        if tool.name() == "WebSearch" && plan.web.search.is_empty() {
            continue;
        }
        registry::register(&root, tool)?;
    }
    root.wrap(Rank::NORMAL, TimeoutPolicy)?;
    ObservationPlugin::default().mount(&root)?;
    JobsPlugin::new(jobs).mount(&root)?;
    PolicyPlugin::new(Some(home)).mount(&root)?;

    findings.problems.extend(plan.mcp.problems.iter().cloned());
    #[cfg(feature = "mcp")]
    root.provide::<dyn McpServers>(Arc::new(sluice_providers::mcp::RmcpServers::new(Arc::clone(&processes))))?;

    let agent = root.child("agent")?;
    let env = claude.env.clone();
    if plan.dialects.claude_code {
        findings.problems.extend(claude.problems.iter().cloned());
    }
    if plan.dialects.codex {
        findings.problems.extend(begun.codex.problems.iter().cloned());
    }
    let settings = Arc::new(LiveSettings::follow(
        begun,
        Arc::clone(&config),
        host_files,
        plan.dialects,
        permissions,
        Arc::clone(&processes),
        &log.handle(),
    ));
    SettingsGate::mount(&agent, &settings, &gated)?;
    if plan.dialects.claude_code {
        ClaudeCodeBridge::new(Arc::clone(&config), settings.claude(), env).mount(&agent)?;
    }
    if plan.dialects.codex {
        CodexBridge::new(config, settings.codex()).mount(&agent)?;
    }
    root.provide::<dyn Settings>(settings)?;
    // Nothing waits between here and the session's own life, so that no server is started for nobody.
    let servers = plan.mcp.connectable(&start_dir, &plan.key_variables);
    McpTools::start(&root, servers, plan.mcp.call, &plan.live)?.hold_first_request(&agent)?;
    mount(&agent)?;

    let agent = Agent::start(AgentSpec {
        context: agent,
        session: Arc::new(session),
        log,
        live: plan.live,
        system: system_prompt(&plan.system, &start_dir),
        limits: plan.limits,
        retry: plan.retry,
        source,
    });
    let agent = match plan.idle_notice {
        Some(patience) => agent.with_idle_notice(patience),
        None => agent,
    };
    Ok(Session { agent, findings, mcp_servers: plan.mcp.names(), root, processes })
}

impl Session {
    /// Ends the session: end hooks under their deadlines, then everything it owned, then the log.
    pub(crate) async fn close(self, reason: &str) -> Result<(), Fault> {
        self.close_unless(reason, std::future::pending()).await
    }

    /// The same, but once `cut` is ready the end hooks are not waited for any longer.
    pub(crate) async fn close_unless(self, reason: &str, cut: impl Future<Output = ()>) -> Result<(), Fault> {
        let Self { agent, root, processes, .. } = self;
        let closing = agent.close(reason, DISPOSE_GRACE);
        tokio::pin!(closing);
        let closed = tokio::select! {
            closed = &mut closing => closed,
            // Without their processes the hooks are over.
            () = cut => tokio::join!(closing, processes.shut_down(DISPOSE_GRACE)).0,
        };
        root.dispose(DISPOSE_GRACE).await;
        processes.shut_down(DISPOSE_GRACE).await;
        closed.map(|_| ()).map_err(Fault::from)
    }
}

/// What had to be mended, as one sentence.
fn repaired(repair: &RepairReport) -> String {
    let mut parts = Vec::new();
    if repair.torn_bytes > 0 {
        parts.push(format!("{} bytes of a half-written line were cut off", repair.torn_bytes));
    }
    if let Some(turn) = repair.closed_turn {
        parts.push(format!("turn {} had not ended and is closed as interrupted", turn.0));
    }
    if repair.synthetic > 0 {
        parts.push(format!("{} closing events were added", repair.synthetic));
    }
    format!("the session's log was repaired: {}", parts.join(", "))
}

async fn check_folder(dir: &Path, remedy: &str) -> Result<(), Fault> {
    match tokio::fs::metadata(dir).await {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(Fault::usage(
            "workspace-not-a-folder",
            format!("the workspace {} is not a folder", dir.display()),
            "name a folder with --cwd, or start sluice inside one",
        )),
        Err(fault) => Err(Fault::usage(
            "workspace-missing",
            format!("the workspace {} cannot be used: {}", dir.display(), reason(&fault)),
            remedy,
        )),
    }
}

fn reason(fault: &std::io::Error) -> String {
    match fault.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        _ => fault.to_string(),
    }
}

/// The sandbox policy with this session's folders.
async fn session_policy(plan: &SessionPlan, start: &Path, root: &Path, home: &Path) -> Result<SandboxPolicy, Fault> {
    let (policy, home, start) = (plan.sandbox.clone(), home.to_owned(), start.to_owned());
    let folders: Vec<PathBuf> = [root.to_owned()].into_iter().chain(plan.additional_dirs.iter().cloned()).collect();
    tokio::task::spawn_blocking(move || crate::sandbox::of_session(policy, &home, &start, &folders))
        .await
        .map_err(|fault| Fault::internal(format!("the sandbox's folders could not be looked at: {fault}")))
}

fn bash_config(
    plan: &SessionPlan,
    claude: &claude_code::Discovery,
    sandbox: SandboxPolicy,
    jobs: Arc<Jobs>,
) -> BashConfig {
    let set = claude.env.iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect();
    let (without, preludes) = (plan.key_variables.clone(), Some(Arc::new(preludes) as sluice_tools::bash::Preludes));
    BashConfig { without, set, preludes, jobs, sandbox }
}

/// What hooks left for the shell to read first, in the order of the hooks.
fn preludes(session: &SessionFacts) -> Vec<PathBuf> {
    let folder = claude_code::env_folder(&session.state_dir);
    // No folder means that no hook was offered a file.
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    files
}

fn system_prompt(wanted: &SystemPrompt, start_dir: &Path) -> String {
    let own = || {
        format!(
            "You are a coding agent. You work in the folder {} through the tools you are given, for a person who \
             reads your answers in an editor or a terminal.\n\nRead a file before you change it. Prefer small, \
             reversible steps. When a call is denied, the reason says why: do not try to get around it. Messages \
             inside <system-reminder> tags come from the harness or its hooks, not from the person.",
            start_dir.display()
        )
    };
    let mut prompt = wanted.instead.clone().unwrap_or_else(own);
    if let Some(more) = &wanted.append {
        prompt.push_str("\n\n");
        prompt.push_str(more);
    }
    prompt
}
