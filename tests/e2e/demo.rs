//! The tour: it holds what it promises, leaves its log where it says, and takes no folder that has something in it.

use std::path::PathBuf;

use crate::log::Log;
use crate::place::Place;

#[test]
fn the_demo_ends_well_with_six_promises_kept_and_its_log_where_it_says() {
    let place = Place::new();
    // A hook of the person who tries it must not run in the tour.
    place.write_home(
        ".claude/settings.json",
        r#"{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"exit 2"}]}]}}"#,
    );
    let done = place.run_sluice(["demo"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{}", done.stdout);
    let held = done.stdout.lines().filter(|line| line.starts_with("ok  ")).count();
    assert_eq!((held, done.stdout.contains("FAIL")), (6, false), "{}", done.stdout);
    for gate in ["claude-code PreToolUse hook: deny", "codex PreToolUse hook: deny", "SUMMARY.md"] {
        assert!(done.stdout.contains(gate), "{gate}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("system-reminder"), "{}", done.stdout);
    let log = done.stdout.lines().find_map(|line| line.strip_prefix("the log     ")).expect("the log is named");
    Log::read(&PathBuf::from(log)).assert_closed();
    assert_eq!(place.logs(), Vec::<PathBuf>::new(), "the tour leaves one's own sessions alone");
    let show = done.stdout.lines().find(|line| line.contains("sessions show")).expect("the way to read it");
    let done = place.run(place.shell(&show.trim().replace(" sluice ", " \"$SLUICE\" ")));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("rm -rf ./important"), "{done:?}");
    place.assert_nothing_left();
}

#[test]
fn the_demo_works_in_a_folder_that_is_new_or_empty_and_in_no_other() {
    let place = Place::new();
    let done = place.run_sluice(["demo", "--dir", "tour"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains(&place.work().join("tour").display().to_string()), "{}", done.stdout);
    let again = place.run_sluice(["demo", "--dir", "tour"]);
    assert_eq!((again.code, again.stdout.as_str()), (2, ""), "{again:?}");
    assert!(again.stderr.contains("tour") && again.stderr.lines().count() <= 2, "{}", again.stderr);
    place.write("file", "");
    let file = place.run_sluice(["demo", "--dir", "file"]);
    assert_eq!(file.code, 2, "{file:?}");
}
