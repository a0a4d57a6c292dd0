//! What the MCP seam promises, kept by its provider over both transports: the same suite against a server written by
//! hand and against one made with the Python SDK, each as a program and over loopback HTTP.
//!
//! Time limits are watchdogs. The SDK's half needs a python3 that has it; `SLUICE_TEST_PYTHON` names one.
#![cfg(feature = "mcp")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a failed test may panic, and a skipped one says so"
)]

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sluice_harness::Fut;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::json::Json;
use sluice_harness::seam::mcp::{
    CallOutcome, Elicitation, ElicitationAnswer, ElicitationKind, Endpoint, McpClient, McpConnection, McpFault,
    McpServers, ServerSpec,
};
use sluice_harness::seam::process::Environment;
use sluice_providers::mcp::RmcpServers;
use sluice_providers::process::LocalProcesses;
use tempfile::TempDir;

const WATCHDOG: Duration = Duration::from_secs(60);

/// Somebody who is asked, and hears of changes.
#[derive(Default)]
struct Person {
    changes: AtomicUsize,
    name: Option<&'static str>,
}

impl McpClient for Person {
    fn tools_changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    fn elicit<'a>(&'a self, question: Elicitation) -> Fut<'a, ElicitationAnswer> {
        Box::pin(async move {
            assert_eq!(question.message, "Who?");
            let ElicitationKind::Form(schema) = question.wants else { panic!("a form is wanted") };
            assert!(schema.text().contains("\"name\""), "{schema}");
            match self.name {
                Some(name) => ElicitationAnswer::Accept(json(&format!(r#"{{"name":"{name}"}}"#))),
                None => ElicitationAnswer::Cancel,
            }
        })
    }
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn server_file(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/servers").join(name).display().to_string()
}

/// A python that can do this, by its absolute path.
fn python(imports: &str) -> Option<String> {
    let named = std::env::var("SLUICE_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let line = format!("import sys, {imports}; print(sys.executable)");
    let found = Command::new(named).args(["-c", &line]).stderr(Stdio::null()).output().ok();
    let path = found.filter(|output| output.status.success()).map(|output| String::from_utf8(output.stdout).unwrap());
    if path.is_none() {
        println!("skipped: no python3 with {imports}");
    }
    path.map(|path| path.trim().to_owned())
}

/// A world with a provider, and perhaps a server beside it that ends with it.
struct World {
    servers: RmcpServers,
    processes: Arc<LocalProcesses>,
    folder: TempDir,
    beside: Option<Child>,
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(child) = &mut self.beside {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl World {
    fn new() -> Self {
        let processes = Arc::new(LocalProcesses::new());
        let servers = RmcpServers::new(Arc::clone(&processes));
        Self { servers, processes, folder: TempDir::new().unwrap(), beside: None }
    }

    fn program(&self, command: &str, args: &[&str]) -> ServerSpec {
        let endpoint = Endpoint::Stdio {
            command: command.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            environment: Environment::default(),
            cwd: self.folder.path().to_owned(),
        };
        ServerSpec { name: "box".to_owned(), endpoint, startup: WATCHDOG }
    }

    fn address(port: u16) -> ServerSpec {
        let headers = vec![("X-Key".to_owned(), "open sesame".to_owned())];
        let endpoint = Endpoint::Http { url: format!("http://127.0.0.1:{port}/mcp"), headers };
        ServerSpec { name: "box".to_owned(), endpoint, startup: WATCHDOG }
    }

    /// Starts a server beside, which listens there once it can.
    fn serve(&mut self, python: &str, args: &[&str], port: impl Fn() -> Option<u16>) -> ServerSpec {
        let mut command = Command::new(python);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.beside = Some(command.spawn().unwrap());
        let started = Instant::now();
        loop {
            if let Some(port) = port()
                && std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
            {
                return Self::address(port);
            }
            assert!(started.elapsed() < WATCHDOG, "the server does not listen");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn boxed(python: &str) -> (Self, ServerSpec) {
        let world = Self::new();
        let spec = world.program(python, &[&server_file("box.py")]);
        (world, spec)
    }

    fn boxed_far(python: &str) -> (Self, ServerSpec) {
        let mut world = Self::new();
        let file = world.folder.path().join("port");
        let args = [server_file("box.py"), "http".to_owned(), file.display().to_string()];
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let spec = world.serve(python, &args, || std::fs::read_to_string(&file).ok()?.parse().ok());
        (world, spec)
    }

    fn sdk(python: &str) -> (Self, ServerSpec) {
        let world = Self::new();
        let spec = world.program(python, &[&server_file("sdk.py")]);
        (world, spec)
    }

    fn sdk_far(python: &str) -> (Self, ServerSpec) {
        let mut world = Self::new();
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let args = [server_file("sdk.py"), free.to_string()];
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let spec = world.serve(python, &args, || Some(free));
        (world, spec)
    }

    async fn connect(&self, spec: &ServerSpec, person: Person) -> Arc<dyn McpConnection> {
        let cancel = Cancel::new();
        let connecting = self.servers.connect(spec, Arc::new(person), &cancel);
        within(connecting).await.unwrap_or_else(|fault| panic!("no connection: {fault}"))
    }
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(WATCHDOG, what).await.expect("it does not come to an end")
}

async fn call(connection: &dyn McpConnection, tool: &str, arguments: &str) -> Result<CallOutcome, McpFault> {
    let (arguments, cancel) = (json(arguments), Cancel::new());
    within(connection.call(tool, &arguments, &cancel)).await
}

fn texts(outcome: &CallOutcome) -> String {
    outcome.content.iter().filter_map(|block| block.str_at("text")).collect()
}

/// What every server can show, whoever wrote it: listing, a result, a failure, an error, and the end.
async fn suite(world: &World, spec: &ServerSpec, works: (&str, &str, &str)) {
    let connection = world.connect(spec, Person::default()).await;
    let cancel = Cancel::new();
    let tools = within(connection.tools(&cancel)).await.unwrap();
    let (tool, arguments, says) = works;
    let offered = tools.iter().find(|offered| offered.name == tool).expect("the tool is listed");
    assert!(offered.input_schema.text().contains("\"object\""), "{}", offered.input_schema);

    let outcome = call(&*connection, tool, arguments).await.unwrap();
    assert!(!outcome.is_error && texts(&outcome).contains(says), "{outcome:?}");
    assert!(outcome.structured.is_some(), "{outcome:?}");

    let failed = call(&*connection, "fail", "{}").await.unwrap();
    assert!(failed.is_error, "{failed:?}");

    let inexact = call(&*connection, tool, r#"{"n":12345678901234567890123}"#).await;
    assert!(matches!(inexact, Err(McpFault::Inexact { .. })), "{inexact:?}");

    assert!(!connection.is_closed());
    within(connection.close()).await;
    within(connection.ended()).await;
    assert!(connection.is_closed());
    let after = call(&*connection, tool, arguments).await;
    assert!(matches!(after, Err(McpFault::Ended { .. })), "{after:?}");
    assert_eq!(world.processes.running(), 0, "its process is gone");
}

#[tokio::test]
async fn a_server_written_by_hand_keeps_the_seam_over_both_transports() {
    let Some(python) = python("json") else { return };
    for (world, spec) in [World::boxed(&python), World::boxed_far(&python)] {
        suite(&world, &spec, ("put", r#"{"x":"hi"}"#, r#"ECHO:{"x": "hi"}"#)).await;
    }
}

#[tokio::test]
async fn a_server_of_the_python_sdk_keeps_the_seam_over_both_transports() {
    let Some(python) = python("mcp") else { return };
    for (world, spec) in [World::sdk(&python), World::sdk_far(&python)] {
        suite(&world, &spec, ("add", r#"{"a":1,"b":2}"#, "3")).await;
    }
}

#[tokio::test]
async fn a_question_reaches_the_person_and_the_answer_the_server() {
    let Some(python) = python("mcp") else { return };
    for (world, spec) in [World::sdk(&python), World::sdk_far(&python)] {
        for (name, says) in [(Some("Ada"), "ELICITED accept"), (None, "ELICITED cancel")] {
            let person = Person { name, ..Person::default() };
            let connection = world.connect(&spec, person).await;
            assert_eq!(texts(&call(&*connection, "ask", "{}").await.unwrap()), says);
            within(connection.close()).await;
        }
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_over_at_once_and_the_connection_lives() {
    let Some(python) = python("json") else { return };
    for (world, spec) in [World::boxed(&python), World::boxed_far(&python)] {
        let connection = world.connect(&spec, Person::default()).await;
        let (arguments, cancel) = (Json::empty_object(), Cancel::new());
        let waiting = connection.call("wait", &arguments, &cancel);
        let cancelled = async {
            tokio::task::yield_now().await;
            cancel.cancel(CancelCause::User);
        };
        let (outcome, ()) = within(async { tokio::join!(waiting, cancelled) }).await;
        assert_eq!(outcome, Err(McpFault::Cancelled));
        assert!(call(&*connection, "plain", "{}").await.is_ok());
        within(connection.close()).await;
    }
}

#[tokio::test]
async fn a_connection_that_is_dropped_takes_its_process_along() {
    let Some(python) = python("json") else { return };
    let world = World::new();
    let spec = world.program(&python, &[&server_file("box.py"), "stubborn"]);
    let connection = world.connect(&spec, Person::default()).await;
    assert_eq!(world.processes.running(), 1);
    drop(connection);
    let gone = async {
        while world.processes.running() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(gone).await;
}

#[tokio::test]
async fn connecting_that_is_cancelled_or_takes_too_long_leaves_nothing() {
    let Some(python) = python("json") else { return };
    let world = World::new();
    let mute = world.program(&python, &[&server_file("box.py"), "mute"]);
    let cancel = Cancel::new();
    let connecting = world.servers.connect(&mute, Arc::new(Person::default()), &cancel);
    let cancelled = async {
        while world.processes.running() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel(CancelCause::User);
    };
    let (outcome, ()) = within(async { tokio::join!(connecting, cancelled) }).await;
    assert!(matches!(outcome.err(), Some(McpFault::Cancelled)));
    let hasty = ServerSpec { startup: Duration::from_millis(300), ..mute };
    let outcome = within(world.servers.connect(&hasty, Arc::new(Person::default()), &Cancel::new())).await;
    assert!(matches!(outcome.err(), Some(McpFault::Silent { .. })));
    within(world.processes.shut_down(Duration::from_millis(100))).await;
    assert_eq!(world.processes.running(), 0);
}

#[tokio::test]
async fn an_address_that_nobody_serves_or_that_refuses_is_named_without_its_secret() {
    let Some(python) = python("json") else { return };
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let nobody = World::new();
    let outcome =
        within(nobody.servers.connect(&World::address(free), Arc::new(Person::default()), &Cancel::new())).await;
    let fault = outcome.err().expect("nobody is there");
    assert!(fault.to_string().contains("refused"), "{fault}");

    let (world, mut spec) = World::boxed_far(&python);
    if let Endpoint::Http { headers, .. } = &mut spec.endpoint {
        headers[0].1 = "a-wrong-secret".to_owned();
    }
    let outcome = within(world.servers.connect(&spec, Arc::new(Person::default()), &Cancel::new())).await;
    let fault = outcome.err().expect("it refuses");
    assert!(fault.to_string().contains("401"), "{fault}");
    assert!(!format!("{fault} {fault:?} {spec:?}").contains("wrong-secret"), "{fault:?}");
}

#[tokio::test]
async fn an_error_of_a_program_does_not_hold_its_secrets() {
    let Some(python) = python("json") else { return };
    let (world, mut spec) = World::boxed(&python);
    if let Endpoint::Stdio { environment, .. } = &mut spec.endpoint {
        environment.set.push(("BOX_TOKEN".to_owned(), "tell-nobody".to_owned()));
    }
    let connection = world.connect(&spec, Person::default()).await;
    let refused = call(&*connection, "refuse", "{}").await;
    assert!(
        matches!(&refused, Err(McpFault::Refused { message, .. }) if message == "not by me<secret>"),
        "{refused:?}"
    );
    within(connection.close()).await;
}

#[tokio::test]
async fn a_server_over_http_that_dies_in_a_call_is_one_error_and_so_is_the_next_call() {
    let Some(python) = python("json") else { return };
    let (mut world, spec) = World::boxed_far(&python);
    let connection = world.connect(&spec, Person::default()).await;
    let mut child = world.beside.take().unwrap();
    let (arguments, cancel) = (Json::empty_object(), Cancel::new());
    let mut waiting = connection.call("wait", &arguments, &cancel);
    let early = tokio::time::timeout(Duration::from_millis(200), &mut waiting).await;
    assert!(early.is_err(), "the call waits: {early:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(within(waiting).await, Err(McpFault::Ended { .. })));
    assert!(matches!(call(&*connection, "plain", "{}").await, Err(McpFault::Ended { .. })));
    within(connection.close()).await;
}

#[tokio::test]
async fn a_change_of_the_tools_is_told() {
    let Some(python) = python("json") else { return };
    let world = World::new();
    let spec = world.program(&python, &[&server_file("box.py"), "grows"]);
    let person = Arc::new(Person::default());
    let client: Arc<dyn McpClient> = Arc::<Person>::clone(&person);
    let cancel = Cancel::new();
    let connection = within(world.servers.connect(&spec, client, &cancel)).await.unwrap();
    let before = within(connection.tools(&cancel)).await.unwrap().len();
    call(&*connection, "put", "{}").await.unwrap();
    let told = async {
        while person.changes.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(told).await;
    assert_eq!(within(connection.tools(&cancel)).await.unwrap().len(), before + 1);
    within(connection.close()).await;
}
