//! What a run should have done, and the comparison with what it did.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::fill;
use super::text::Text;
use crate::log::{Log, texts};
use crate::place::{Done, Place};

/// Expectations of one run; what is left out is not looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expect {
    /// The exit code; 0 when left out.
    exit: i32,
    stdout: Option<Text>,
    stderr: Option<Text>,
    /// Nothing on stderr.
    quiet: bool,
    /// The name of a file of the whole stderr, for people to review; `UPDATE_EXPECT=1` writes it.
    messages: Option<String>,
    /// The lines of the file `marks`, in order.
    marks: Option<Vec<String>>,
    /// The lines of the file `marks` in any order.
    marks_sorted: Option<Vec<String>>,
    /// Files of the workspace; null for one that must not be there.
    files: BTreeMap<String, Option<Text>>,
    /// How many requests the model got in this run.
    request_count: Option<usize>,
    /// What requests of this run held, by number from 0, as one text.
    requests: BTreeMap<usize, Text>,
    /// Results in the log by call id.
    results: BTreeMap<String, Text>,
    /// Every hook of the session as `Event:decision`.
    hooks: Option<Vec<String>>,
    /// How often each kind of event is in the log.
    events: BTreeMap<String, usize>,
    /// An upper bound, far above what it takes; what is tested is that nothing waits for something longer.
    under_ms: Option<u64>,
    over_ms: Option<u64>,
    /// Processes of this run are expected to outlive it.
    pub(crate) leaves_processes: bool,
}

impl Expect {
    #[track_caller]
    pub(crate) fn check(&self, place: &Place, done: &Done, log: Option<&Log>, requests: &[Value]) {
        let fill = |text: &str| fill(place, text);
        let shown = || format!("stdout: {}\nstderr: {}", done.stdout, done.stderr);
        assert_eq!(done.code, self.exit, "the exit code; {}", shown());
        if let Some(stdout) = &self.stdout {
            stdout.check("stdout", &done.stdout, &fill);
        }
        if let Some(stderr) = &self.stderr {
            stderr.check("stderr", &done.stderr, &fill);
        }
        if self.quiet {
            assert_eq!(done.stderr, "", "nothing is said");
        }
        if let Some(name) = &self.messages {
            let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases/messages").join(name);
            expect_test::expect_file![path].assert_eq(&neutral(place, &done.stderr));
        }
        if let Some(marks) = &self.marks {
            let marks: Vec<String> = marks.iter().map(|mark| fill(mark)).collect();
            assert_eq!(place.read("marks").lines().collect::<Vec<_>>(), marks, "marks; {}", shown());
        }
        if let Some(marks) = &self.marks_sorted {
            let text = place.read("marks");
            let mut found: Vec<&str> = text.lines().collect();
            found.sort_unstable();
            assert_eq!(&found, marks, "marks; {}", shown());
        }
        for (name, content) in &self.files {
            let path = place.work().join(fill(name));
            match content {
                Some(content) => {
                    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{name}: {e}; {}", shown()));
                    content.check(name, &String::from_utf8_lossy(&bytes), &fill);
                }
                None => assert!(!path.exists(), "{name} is there; {}", shown()),
            }
        }
        if let Some(count) = self.request_count {
            assert_eq!(requests.len(), count, "requests; {}", shown());
        }
        for (number, text) in &self.requests {
            let request = requests.get(*number).unwrap_or_else(|| panic!("no request {number}; {}", shown()));
            text.check(&format!("request {number}"), &texts(&request["messages"]).join("\n"), &fill);
        }
        self.check_log(log, &fill);
        self.check_time(done);
    }

    #[track_caller]
    fn check_log(&self, log: Option<&Log>, fill: &dyn Fn(&str) -> String) {
        let log = || log.expect("a session log");
        for (call, wanted) in &self.results {
            let (result, text) = log().result(call);
            if let Some(error) = wanted.error() {
                assert_eq!(result["is_error"], error, "the result of {call}: {text}");
            }
            wanted.check(&format!("the result of {call}"), &text, fill);
        }
        if let Some(hooks) = &self.hooks {
            assert_eq!(&log().hooks(), hooks, "hooks in the log");
        }
        for (kind, count) in &self.events {
            assert_eq!(log().of(kind).len(), *count, "events {kind} in {:?}", log().kinds());
        }
    }

    #[track_caller]
    fn check_time(&self, done: &Done) {
        if let Some(limit) = self.under_ms {
            assert!(done.took < Duration::from_millis(limit), "it took {:?}, more than {limit} ms", done.took);
        }
        if let Some(limit) = self.over_ms {
            assert!(done.took >= Duration::from_millis(limit), "it took {:?}, less than {limit} ms", done.took);
        }
    }
}

/// A text without what differs from run to run.
fn neutral(place: &Place, text: &str) -> String {
    let mut text = text.to_owned();
    for log in place.logs() {
        text = text.replace(&*log.file_stem().unwrap().to_string_lossy(), "SESSION");
    }
    // How long a repetition waits is left to chance on purpose.
    let mut parts = text.split(" is sent again in ");
    let first = parts.next().unwrap_or_default().to_owned();
    text = parts.fold(first, |whole, part| {
        whole + " is sent again in N" + part.trim_start_matches(|c: char| c.is_ascii_digit())
    });
    text.replace(&place.work().display().to_string(), "WORKSPACE")
        .replace(&place.home().display().to_string(), "HOME")
        .replace(&place.root().display().to_string(), "ROOT")
        .replace(&format!("sluice-{}", rustix::process::geteuid().as_raw()), "sluice-UID")
}
