//! The sandbox of proposed commands, in the built program on this machine's kernel.
//!
//! The ways out are data, `escapes.json`: each is tried as root and as an ordinary user, must be refused and change
//! nothing, and has a twin that does the same kind of thing where it may, and must work. A part that needs more than the
//! machine has says that it was skipped.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::log::Log;
use crate::place::{Done, Place, has};

/// A user that owns nothing.
const NOBODY: u32 = 65534;

#[derive(Debug, Deserialize)]
struct Escape {
    name: String,
    /// A variable without which it cannot be tried.
    needs: Option<String>,
    /// A program without which it cannot be tried.
    tool: Option<String>,
    #[serde(default = "workspace_write")]
    mode: String,
    #[serde(default = "on")]
    network: String,
    /// A file outside that must not be there afterwards.
    leaves: String,
    refused: String,
    allowed: String,
}

fn workspace_write() -> String {
    "workspace-write".to_owned()
}

fn on() -> String {
    "on".to_owned()
}

/// Who runs the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    Root,
    Nobody,
    Own,
}

/// Whom this machine lets us be.
fn users() -> Vec<User> {
    if !rustix::process::getuid().is_root() {
        println!("skipped: as root (the tests are not run by root)");
        return vec![User::Own];
    }
    let program = Path::new(env!("CARGO_BIN_EXE_sluice"));
    let reachable = program.ancestors().skip(1).all(|folder| {
        folder.as_os_str().is_empty() || folder.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
    });
    if !has("setpriv") || !reachable {
        println!("skipped: as an ordinary user (no setpriv, or {} cannot be reached)", program.display());
        return vec![User::Root];
    }
    vec![User::Root, User::Nobody]
}

/// Somebody else's home, readable by all, for as long as this lives.
struct OtherHome(PathBuf);

impl OtherHome {
    fn make() -> Option<Self> {
        let path = PathBuf::from(format!("/home/sluice-other-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let home = Self(path);
        fs::write(home.0.join("secret"), "secret").ok()?;
        chown(&home.0, Some(NOBODY - 1), Some(NOBODY - 1)).ok()?;
        fs::set_permissions(&home.0, fs::Permissions::from_mode(0o755)).ok()?;
        Some(home)
    }
}

impl Drop for OtherHome {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process outside every sandbox.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn as_user(user: User, command: &Command) -> Command {
    let mut outer = match user {
        User::Root | User::Own => Command::new(command.get_program()),
        User::Nobody => {
            let mut outer = Command::new("setpriv");
            outer.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()]);
            outer.arg("--").arg(command.get_program());
            outer
        }
    };
    outer.args(command.get_args()).env_clear();
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    std::os::unix::process::CommandExt::process_group(&mut outer, 0);
    outer.stdin(std::process::Stdio::null());
    outer
}

fn give_to_nobody(folder: &Path) {
    chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            give_to_nobody(&path);
        } else {
            let _ = std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY));
        }
    }
}

/// A place with something outside, and with caches.
fn place() -> Place {
    let place = Place::out_of_temp();
    fs::create_dir(place.root().join("out")).unwrap();
    fs::write(place.root().join("out/given"), "given").unwrap();
    for cache in [".cache/keep", ".cargo/registry/keep", ".cargo/bin/keep"] {
        place.write_home(cache, "");
    }
    place
}

/// Runs commands of the model, one after another.
fn run(place: &Place, user: User, flags: &[&str], commands: &[&str]) -> (Done, Vec<(bool, String)>) {
    let calls: Vec<Value> = commands
        .iter()
        .map(|command| json!({"name": "Bash", "input": {"command": command, "timeout": 60_000}}))
        .collect();
    let model = place.script(&json!({"steps": [{"text": "go", "tool_calls": calls}, {"text": "done"}]}));
    let args = [&["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"], flags].concat();
    if user == User::Nobody {
        give_to_nobody(&place.root());
    }
    let done = place.run(as_user(user, &place.sluice(args)));
    place.assert_nothing_left();
    let logs = place.logs();
    let log = Log::read(logs.last().unwrap_or_else(|| panic!("no log: {done:?}")));
    let results = (1..=commands.len())
        .map(|n| {
            let (result, text) = log.result(&format!("call_{n}"));
            (result["is_error"] == true, text)
        })
        .collect();
    (done, results)
}

#[test]
fn r_411_r_414_every_way_out_is_refused_and_its_twin_works() {
    let escapes: Vec<Escape> = serde_json::from_str(include_str!("escapes.json")).unwrap();
    let other = OtherHome::make();
    for user in users() {
        let mut wrong = Vec::new();
        let mut groups: BTreeMap<(&str, &str), Vec<&Escape>> = BTreeMap::new();
        for escape in &escapes {
            if escape.needs.is_some() && other.is_none() {
                println!("skipped: {} (a folder in /home cannot be made)", escape.name);
            } else if escape.tool.as_ref().is_some_and(|tool| !has(tool)) {
                println!("skipped: {} (no {})", escape.name, escape.tool.as_deref().unwrap_or_default());
            } else {
                groups.entry((&escape.mode, &escape.network)).or_default().push(escape);
            }
        }
        for ((mode, network), escapes) in groups {
            let mut place = place();
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut sleep = Command::new("sleep");
            let victim =
                Victim(as_user(user, sleep.arg("600").env("PATH", std::env::var("PATH").unwrap())).spawn().unwrap());
            place.set("OUT", &place.root().join("out").display().to_string());
            place.set("VICTIM", &victim.0.id().to_string());
            place.set("TCP", &tcp.local_addr().unwrap().port().to_string());
            place.set("UDP", &udp.local_addr().unwrap().port().to_string());
            if let Some(other) = &other {
                place.set("OTHER", &other.0.display().to_string());
            }
            let commands: Vec<&str> = escapes.iter().flat_map(|e| [e.refused.as_str(), e.allowed.as_str()]).collect();
            let (done, results) = run(&place, user, &["--sandbox", mode, "--network", network], &commands);
            assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{user:?} {mode} {network}: {done:?}");
            for (escape, pair) in escapes.iter().zip(results.chunks(2)) {
                let name = format!("{user:?} {mode} {network} {}", escape.name);
                if !pair[0].0 {
                    wrong.push(format!("{name}: not refused: {}", pair[0].1));
                }
                if pair[1].0 {
                    wrong.push(format!("{name}: its twin does not work: {}", pair[1].1));
                }
                if place.root().join("out").join(&escape.leaves).exists() {
                    wrong.push(format!("{name}: left {}", escape.leaves));
                }
            }
            assert_eq!(fs::read_to_string(place.root().join("out/given")).unwrap(), "given", "{user:?} {mode}");
            assert!(runs(&victim), "{user:?} {mode}: the process outside lives");
            tcp.set_nonblocking(true).unwrap();
            udp.set_nonblocking(true).unwrap();
            if network == "off" && (tcp.accept().is_ok() || udp.recv(&mut [0; 9]).is_ok()) {
                wrong.push(format!("{user:?} {mode}: something came over the network"));
            }
        }
        assert!(wrong.is_empty(), "{} to put right:\n{}", wrong.len(), wrong.join("\n"));
    }
}

fn runs(victim: &Victim) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", victim.0.id())).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn r_414_the_network_is_reached_where_it_is_on() {
    for user in users() {
        let mut place = place();
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        place.set("TCP", &tcp.local_addr().unwrap().port().to_string());
        place.set("UDP", &udp.local_addr().unwrap().port().to_string());
        let commands = ["echo tcp > /dev/tcp/127.0.0.1/$TCP", "echo udp > /dev/udp/127.0.0.1/$UDP"];
        let (_, results) = run(&place, user, &["--sandbox", "read-only"], &commands);
        assert!(results.iter().all(|(failed, _)| !failed), "{user:?}: {results:?}");
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let mut came = String::new();
        tcp.accept().unwrap().0.read_to_string(&mut came).unwrap();
        let mut packet = [0; 4];
        udp.recv(&mut packet).unwrap();
        assert_eq!((came.as_str(), &packet), ("tcp\n", b"udp\n"));
    }
}

#[test]
fn a_writable_folder_that_becomes_a_link_opens_nothing() {
    let place = place();
    fs::create_dir(place.work().join("added")).unwrap();
    let turn = format!("mv added was && ln -s '{}' added", place.root().join("out").display());
    let commands = ["echo x > added/fine", &turn, "echo x > added/through", "echo x > was/still"];
    let (_, results) = run(&place, User::Own, &["--sandbox", "workspace-write", "--add-dir", "added"], &commands);
    let failed: Vec<bool> = results.iter().map(|(failed, _)| *failed).collect();
    assert_eq!(failed, [false, false, true, false], "{results:?}");
    assert!(!place.root().join("out/through").exists());
}

#[test]
fn a_link_planted_in_a_cache_opens_nothing_in_the_next_session() {
    for user in users() {
        let place = place();
        for cache in [".cache/uv/keep", "go/pkg/mod/keep", ".npm/keep"] {
            place.write_home(cache, "");
        }
        let out = place.root().join("out").display().to_string();
        let plant = [
            "rm -r ~/.cache/uv && ln -s / ~/.cache/uv",
            &format!("rm -r ~/go/pkg/mod && ln -s '{out}' ~/go/pkg/mod && chmod 555 ~/go/pkg"),
        ];
        let flags = ["--sandbox", "workspace-write"];
        let (_, results) = run(&place, user, &flags, &plant);
        assert!(results.iter().all(|(failed, _)| !failed), "{user:?}: {results:?}");
        let touch = format!("touch '{out}/x'");
        let (_, results) = run(&place, user, &flags, &[&touch, "touch ~/go/pkg/mod/y", "touch ~/.cache/z ~/.npm/z"]);
        let failed: Vec<bool> = results.iter().map(|(failed, _)| *failed).collect();
        assert_eq!(failed, [true, true, false], "{user:?}: {results:?}");
        // The file tools go by the same folders.
        let write = json!({"name": "Write", "input": {"file_path": format!("{out}/w"), "content": "x"}});
        let model = place.script(&json!({"steps": [{"text": "go", "tool_calls": [write]}, {"text": "done"}]}));
        let args = [&["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"], &flags[..]].concat();
        let done = place.run(as_user(user, &place.sluice(args)));
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "{user:?}: only what was given");
    }
}

#[test]
fn a_command_that_only_reads_has_no_terminals_and_another_may_make_them() {
    if !has("script") {
        println!("skipped: no script");
        return;
    }
    let mut place = place();
    let named = place.root().join("out/tty");
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &format!("tty > '{}'; exec sleep 600", named.display()), "/dev/null"]);
    terminal.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    let _terminal = Victim(terminal.spawn().unwrap());
    let name = || fs::read_to_string(&named).unwrap_or_default().trim().to_owned();
    assert!(crate::place::until(std::time::Duration::from_secs(30), || name().starts_with("/dev/pts/")), "{}", name());
    place.set("TERMINAL", &name());
    let commands =
        ["test -w \"$TERMINAL\" && echo x > \"$TERMINAL\"", "script -qec true /dev/null", "echo x > /dev/null"];
    for (mode, expected) in [("read-only", [true, true, false]), ("workspace-write", [false, false, false])] {
        let (_, results) = run(&place, User::Own, &["--sandbox", mode], &commands);
        let failed: Vec<bool> = results.iter().map(|(failed, _)| *failed).collect();
        assert_eq!(failed, expected, "{mode}: {results:?}");
    }
}

#[test]
fn in_the_home_folder_what_lets_somebody_in_stays_as_it_is() {
    let place = place();
    place.write_home(".ssh/authorized_keys", "mine");
    place.write_home("project/file", "");
    let commands = [
        "cd ~ && echo x >> .ssh/authorized_keys",
        "cd ~ && echo x > .bashrc",
        "cd ~ && mkdir .codex",
        "cd ~ && echo x > .cargo/bin/ls",
        "cd ~/project && echo x > file && echo x > ~/.cache/x",
    ];
    let home = place.home().display().to_string();
    let (_, results) = run(&place, User::Own, &["--cwd", &home], &commands);
    let failed: Vec<bool> = results.iter().map(|(failed, _)| *failed).collect();
    assert_eq!(failed, [true, true, true, true, false], "{results:?}");
    assert_eq!(fs::read_to_string(place.home().join(".ssh/authorized_keys")).unwrap(), "mine");
}

#[test]
fn powers_that_sluice_was_started_with_do_not_reach_its_commands() {
    let with = ["--inh-caps=+sys_ptrace,+dac_read_search", "--ambient-caps=+sys_ptrace,+dac_read_search"];
    let works = |user: &[&str]| {
        Command::new("setpriv").args(user).args(with).arg("true").output().is_ok_and(|done| done.status.success())
    };
    let reachable = users().contains(&User::Nobody);
    let nobody = [&format!("--reuid={NOBODY}")[..], &format!("--regid={NOBODY}"), "--clear-groups"];
    if !reachable || !works(&nobody) {
        println!("skipped: no setpriv, or no powers to pass on");
        return;
    }
    for user in [&nobody[..], &["--reuid=0"]] {
        let place = place();
        let calls = json!([{"name": "Bash", "input": {"command": "grep ^Cap /proc/self/status"}}]);
        let model = place.script(&json!({"steps": [{"text": "go", "tool_calls": calls}, {"text": "done"}]}));
        let flags = ["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"];
        let inner = place.sluice(flags);
        if user.len() > 1 {
            give_to_nobody(&place.root());
        }
        let mut outer = Command::new("setpriv");
        outer.args(user).args(with).arg("--").arg(inner.get_program()).args(inner.get_args());
        let mut outer = as_user(User::Own, outer.envs(inner.get_envs().filter_map(|(k, v)| Some((k, v?)))));
        outer.current_dir(place.work());
        let done = place.run(outer);
        let text = Log::read(place.logs().last().unwrap_or_else(|| panic!("{done:?}"))).result("call_1").1;
        let sets: Vec<u64> =
            text.lines().filter_map(|line| u64::from_str_radix(line.split_once(":\t")?.1.trim(), 16).ok()).collect();
        // CAP_DAC_READ_SEARCH is 2, CAP_SYS_PTRACE 19. What is bound for nobody no program can have again.
        let dangerous = (1 << 2) | (1 << 19);
        assert_eq!(sets.len(), 5, "{text}");
        assert!(sets.iter().enumerate().all(|(n, set)| n == 3 || set & dangerous == 0), "{user:?}: {text}");
        assert!(user.len() > 1 || sets[3] & dangerous == 0, "the bounding set of root: {text}");
    }
}

/// Runs in a kernel that has no Landlock, as far as sluice can see: its call for it is answered by a filter that sluice
/// inherits.
fn without_landlock<T: Send>(errno: u32, work: impl FnOnce() -> T + Send) -> T {
    const LANDLOCK_CREATE_RULESET: i64 = 444;
    let filter: seccompiler::BpfProgram = seccompiler::SeccompFilter::new(
        BTreeMap::from([(LANDLOCK_CREATE_RULESET, Vec::new())]),
        seccompiler::SeccompAction::Allow,
        seccompiler::SeccompAction::Errno(errno),
        std::env::consts::ARCH.try_into().unwrap(),
    )
    .unwrap()
    .try_into()
    .unwrap();
    std::thread::scope(|scope| {
        // The filter is the thread's and of what it starts.
        let thread = scope.spawn(move || {
            seccompiler::apply_filter(&filter).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn r_412_a_sandbox_that_was_asked_for_and_cannot_be_enforced_lets_nothing_run() {
    // ENOSYS is a kernel without it, EPERM a container that forbids it.
    for errno in [38, 1] {
        for how in [&["--sandbox", "workspace-write"][..], &["--sandbox", "read-only", "--network", "off"], &[]] {
            let place = place();
            if how.is_empty() {
                place.write_home(".config/sluice/config.toml", "[sandbox]\nmode = \"workspace-write\"\n");
            }
            let (done, results) = without_landlock(errno, || run(&place, User::Own, how, &["touch ran", "echo x"]));
            assert_eq!(done.code, 0, "{done:?}");
            assert!(results.iter().all(|(failed, text)| *failed && text.contains("cannot be enforced")), "{results:?}");
            assert!(!place.work().join("ran").exists());
            let log = Log::read(&place.logs()[0]);
            assert_eq!(log.result("call_1").0["error"]["code"], "SANDBOX_UNAVAILABLE");
            assert_eq!(done.stderr.matches("cannot be enforced").count(), 1, "said once: {}", done.stderr);
        }
    }
}

#[test]
fn r_412_without_a_wish_what_is_not_enforced_is_said_once_and_commands_run() {
    let place = place();
    let (done, results) = without_landlock(38, || run(&place, User::Own, &[], &["touch ran", "unshare -Ur true"]));
    assert!(!results[0].0 && results[1].0, "the filter of calls holds all the same: {results:?}");
    assert!(place.work().join("ran").exists());
    assert_eq!(done.stderr.matches("not held back from").count(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("Landlock"), "{}", done.stderr);
    // What needs no Landlock is enforced without it.
    let place = self::place();
    let (done, results) = without_landlock(38, || {
        run(&place, User::Own, &["--network", "off"], &["echo x > /dev/udp/127.0.0.1/9", "true"])
    });
    assert!(results[0].0 && !results[1].0, "{done:?} {results:?}");
}

#[test]
fn r_415_a_denial_is_marked_on_a_line_of_its_own_and_names_the_way_to_ask() {
    let place = place();
    let commands = ["echo x > ../out/f", "echo x > /nonesuch/f", "echo x > f; exit 3"];
    let (_, results) = run(&place, User::Own, &[], &commands);
    let marked =
        |n: usize| results[n].1.lines().any(|l| l == "[sandbox: file access denied under workspace-write mode]");
    assert_eq!([marked(0), marked(1), marked(2)], [true, false, false], "{results:?}");
    assert!(results[0].1.contains("sandbox_permissions \"off\""), "{results:?}");
}

#[test]
fn a_repository_may_hold_commands_back_further_and_never_less() {
    let tight = place();
    tight.write(".sluice/config.toml", "[sandbox]\nmode = \"read-only\"\nnetwork = \"off\"\n");
    let (done, results) = run(&tight, User::Own, &[], &["echo x > f", "echo x > /dev/udp/127.0.0.1/9", "true"]);
    assert_eq!(results.iter().map(|(failed, _)| *failed).collect::<Vec<_>>(), [true, true, false], "{done:?}");
    assert!(done.stderr.contains("tightens sandbox.mode, sandbox.network"), "{}", done.stderr);
    let loose = place();
    loose.write(".sluice/config.toml", "[sandbox]\nmode = \"off\"\n");
    let (done, results) = run(&loose, User::Own, &["--network", "off"], &["echo x > ../out/f"]);
    assert!(results[0].0 && done.stderr.contains("sandbox.mode"), "{done:?}");
}

#[test]
fn r_411_the_file_tools_keep_to_a_sandbox_that_was_asked_for() {
    let place = place();
    let write = |path: PathBuf| json!({"name": "Write", "input": {"file_path": path, "content": "x"}});
    let model = place.script(&json!({"steps": [
        {"text": "go", "tool_calls": [write(place.root().join("out/w")), write(place.work().join("w"))]},
        {"text": "done"}
    ]}));
    let flags =
        ["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions", "--sandbox", "workspace-write"];
    let done = place.run_sluice(flags);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!place.root().join("out/w").exists() && place.work().join("w").exists());
    assert!(Log::read(&place.logs()[0]).result("call_1").1.contains("sandbox"));
}

#[test]
fn r_416_out_of_the_sandbox_only_a_person_lets_a_call_and_no_rule_or_hook() {
    let out = |place: &Place| place.root().join("out/escaped");
    // What flags, and whether the call runs: nobody can be asked here.
    for (flags, runs) in [
        (&["--allowed-tools", "Bash"][..], false),
        (&["--permission-mode", "dontAsk", "--allowed-tools", "Bash"], false),
        (&["--permission-mode", "bypassPermissions"], true),
        (&["--permission-mode", "bypassPermissions", "--sandbox", "workspace-write"], false),
        (&["--permission-mode", "bypassPermissions", "--disallowed-tools", "Bash(echo *)"], false),
    ] {
        let place = place();
        let allow = |event: &str, output: &str| json!([{"hooks": [{"type": "command", "command": format!("echo '{}'", output.replace("EVENT", event))}]}]);
        let hooks = json!({"hooks": {
            "PreToolUse": allow("PreToolUse", r#"{"hookSpecificOutput":{"hookEventName":"EVENT","permissionDecision":"allow"}}"#),
            "PermissionRequest": allow("PermissionRequest", r#"{"hookSpecificOutput":{"hookEventName":"EVENT","decision":{"behavior":"allow"}}}"#),
        }});
        place.write_home(".claude/settings.json", &hooks.to_string());
        let input =
            json!({"command": "echo x > ../out/escaped", "sandbox_permissions": "off", "justification": "must"});
        let calls = json!([{"name": "Bash", "input": input}]);
        let model = place.script(&json!({"steps": [{"text": "go", "tool_calls": calls}, {"text": "done"}]}));
        let done = place.run_sluice([&["run", "hi", "--model", &model], flags].concat());
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(out(&place).exists(), runs, "{flags:?}: {:?}", Log::read(&place.logs()[0]).result("call_1"));
    }
}
