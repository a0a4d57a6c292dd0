//! Every test of the pipeline asserts how often each stage ran: pre-execute, guards, wrappers, the body, post-execute,
//! the finalizer and observers. (That each durable call has its one durable result is asserted after every prompt.)

const PIPELINE: &[(&str, &str)] = &[
    ("batches", include_str!("batches.rs")),
    ("cancellation", include_str!("cancellation.rs")),
    ("closed", include_str!("closed.rs")),
    ("dispatch", include_str!("dispatch.rs")),
    ("gates", include_str!("gates.rs")),
    ("settling", include_str!("settling.rs")),
    ("substitution", include_str!("substitution.rs")),
];

#[test]
fn every_test_of_the_pipeline_counts_its_stages() {
    let mut found = 0;
    for (module, source) in PIPELINE {
        for test in source.split("#[tokio::test").skip(1) {
            let body = test.split("\n}\n").next().unwrap();
            let name = body.split("async fn ").nth(1).unwrap().split('(').next().unwrap();
            // `cancelled_call` gives the tally beside the result.
            let counts = body.contains(".tally()") || (body.contains("cancelled_call(") && body.contains("tally"));
            assert!(counts, "{module}::{name} does not say how often each stage ran");
            found += 1;
        }
    }
    assert!(found > 80, "{found} tests of the pipeline");
}
