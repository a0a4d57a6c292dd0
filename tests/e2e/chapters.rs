//! One test for each chapter of cases, so that a failure names its chapter and the case in it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::case::{Case, play};

/// Plays all cases of a chapter, or with `CASE=…` those whose names begin so.
#[track_caller]
fn chapter(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let only = std::env::var("CASE").unwrap_or_default();
    let mut failed = Vec::new();
    let mut played = 0;
    for case in cases.iter().filter(|case| case.name.starts_with(&only)) {
        match catch_unwind(AssertUnwindSafe(|| play(case))) {
            Ok(true) => played += 1,
            Ok(false) => {}
            Err(_) => {
                println!("^ in the case {:?}\n", case.name);
                failed.push(case.name.as_str());
            }
        }
    }
    println!("{name}: {played} cases played");
    assert!(failed.is_empty(), "{name}: {} failed:\n  {}", failed.len(), failed.join("\n  "));
}

macro_rules! chapters {
    ($($test:ident = $file:literal;)*) => {
        $(
            #[test]
            fn $test() {
                chapter($file);
            }
        )*

        #[test]
        fn every_chapter_is_played() {
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
            let mut found: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
                .collect();
            found.sort();
            let mut known = vec![$($file.to_owned()),*];
            known.sort();
            assert_eq!(found, known, "each case file has its test in chapters.rs");
        }
    };
}

chapters! {
    files_are_read_and_changed_as_what_they_are = "files";
    settings_are_found_and_loaded = "settings";
    hooks_read_whole_payloads = "payloads";
    hooks_have_their_folder_and_environment = "environment";
    shells_in_the_background_are_read_and_end = "background";
    time_limits_and_process_trees_hold = "time";
    outputs_and_exit_codes_decide = "outputs";
    permissions_keep_their_order = "permissions";
    rewrites_and_contexts_reach_the_model = "injection";
    turns_end_as_hooks_say = "lifecycle";
    hooks_run_in_parallel_and_once = "parallel";
    the_codex_dialect_runs = "codex";
    a_pipeline_can_rely_on_it = "headless";
    answers_fit_the_schema_that_was_asked_for = "structured";
    servers_of_tools_are_connected = "mcp";
    questions_are_answered_by_somebody_or_by_nobody = "questions";
    bad_input_is_one_clear_sentence = "bad-input";
}
