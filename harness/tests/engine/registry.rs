//! Registration, layers and restrictions.

use std::sync::Arc;
use std::time::Duration;

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::content::Block;
use sluice_harness::context::Context;
use sluice_harness::json::Json;
use sluice_harness::point::Observer;
use sluice_harness::registry::{
    self, RESERVED, RegisterFault, ToolsChange, ToolsChanged, register, resolve, restrict, schemas, visible,
};
use sluice_harness::tool::{BodyView, CallCard, CallKind, Content, SchemaOrigin, Tool, ToolFailure};

use crate::kit::{assert_pairs, json, one, sees_in};
use crate::rig::{Counts, Play, Probe, Rig, answers, prompt, results, text};

fn probe(name: &'static str) -> Arc<dyn Tool> {
    Arc::new(Probe::new(name, &Arc::new(Counts::default()), answers("ok")))
}

/// A tool whose schemas and budget are given.
struct Schemas {
    parameters: &'static str,
    output: &'static str,
    origin: SchemaOrigin,
    timeout: Option<Duration>,
}

impl Schemas {
    fn of(parameters: &'static str, output: &'static str) -> Self {
        Self { parameters, output, origin: SchemaOrigin::Own, timeout: None }
    }
}

impl Tool for Schemas {
    fn name(&self) -> &str {
        "odd"
    }
    fn description(&self) -> &str {
        "an odd one"
    }
    fn parameters(&self) -> Json {
        json(self.parameters)
    }
    fn output(&self) -> Json {
        json(self.output)
    }
    fn schema_origin(&self) -> SchemaOrigin {
        self.origin
    }
    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
    fn execute<'a>(&'a self, _: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(std::future::ready(Ok(json(r#""ok""#))))
    }
    fn render(&self, _: &Json, _: &Json) -> Content {
        vec![Block::text("ok")]
    }
    fn present_call(&self, _: &Json) -> CallCard {
        CallCard { title: "odd".into(), kind: CallKind::Other, items: Vec::new(), locations: Vec::new() }
    }
}

const ANY_OBJECT: &str = r#"{"type":"object"}"#;
const TEXT: &str = r#"{"type":"string"}"#;

#[test]
fn r_002_r_003_schemas_outside_the_subset_are_refused_at_once_with_every_violation() {
    let root = Context::root("root");
    for (parameters, output, which) in [
        (r#"{"type":"object","properties":{"a":{"type":"string","pattern":"x","minLength":1}}}"#, TEXT, "parameters"),
        (ANY_OBJECT, r#"{"type":"string","pattern":"x","format":"y"}"#, "output"),
    ] {
        let fault = register(&root, Arc::new(Schemas::of(parameters, output))).unwrap_err();
        let RegisterFault::Schema { name, which: at, violations } = &fault else { panic!("{fault}") };
        assert_eq!((name.as_str(), *at, violations.len()), ("odd", which, 2));
        assert!(fault.to_string().contains("pattern"), "{fault}");
        assert!(visible(&root).is_empty());
    }
}

#[test]
fn foreign_schemas_may_be_any_that_compile() {
    let root = Context::root("root");
    let foreign = |parameters| Schemas { origin: SchemaOrigin::Foreign, ..Schemas::of(parameters, TEXT) };
    let fine = register(&root, Arc::new(foreign(r#"{"type":"object","patternProperties":{"^a":{"type":"string"}}}"#)));
    fine.unwrap().end();
    let fault = register(&root, Arc::new(foreign(r#"{"type":"no such type"}"#))).unwrap_err();
    assert!(matches!(&fault, RegisterFault::Foreign { name, .. } if name == "odd"), "{fault}");
    assert!(visible(&root).is_empty());
}

#[test]
fn r_004_a_budget_of_nothing_is_refused_and_a_budget_is_never_told() {
    let root = Context::root("root");
    let timed = |timeout| Schemas { timeout: Some(timeout), ..Schemas::of(ANY_OBJECT, TEXT) };
    let fault = register(&root, Arc::new(timed(Duration::ZERO))).unwrap_err();
    assert_eq!(fault.to_string(), "the tool `odd` has a time budget of zero");
    register(&root, Arc::new(timed(Duration::from_secs(7)))).unwrap();
    let told = Json::of(&schemas(&root)).unwrap();
    assert_eq!(told.text(), r#"[{"name":"odd","description":"an odd one","parameters":{"type":"object"}}]"#);
}

#[test]
fn r_005_the_reserved_name_can_be_neither_registered_nor_restricted() {
    let root = Context::root("root");
    let child = root.child("child").unwrap();
    for scope in [&root, &child] {
        assert_eq!(register(scope, probe(RESERVED)).unwrap_err(), RegisterFault::Reserved);
    }
    assert!(restrict(&child, Some(vec![RESERVED.into()]), vec![]).is_err());
    assert!(restrict(&child, None, vec![RESERVED.into()]).is_err());
}

#[test]
fn r_006_the_nearest_layer_wins_a_name_whatever_the_order_and_one_layer_has_it_once() {
    for inner_first in [false, true] {
        let root = Context::root("root");
        let child = root.child("child").unwrap();
        let (outer, inner) = if inner_first {
            let inner = register(&child, probe("t")).unwrap();
            (register(&root, probe("t")).unwrap(), inner)
        } else {
            (register(&root, probe("t")).unwrap(), register(&child, probe("t")).unwrap())
        };
        let (at_root, at_child) = (resolve(&root, "t").unwrap(), resolve(&child, "t").unwrap());
        assert!(!Arc::ptr_eq(&at_root, &at_child));
        let fault = register(&root, probe("t")).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "a tool named `t` is already registered in the scope `root`; a child scope may shadow it"
        );
        inner.end();
        assert!(Arc::ptr_eq(&at_root, &resolve(&child, "t").unwrap()));
        outer.end();
        assert!(resolve(&child, "t").is_none());
    }
}

fn names(scope: &Context) -> Vec<String> {
    visible(scope).into_keys().collect()
}

#[test]
fn r_007_a_view_is_the_inherited_layers_under_every_restriction_of_the_chain_and_the_own_layer_unfiltered() {
    // (what restricts where) → what the leaf sees. Root has a, b; middle has c and shadows a; the leaf has d.
    type Restrict = fn(&Context, &Context);
    let cases: [(&str, Restrict, &[&str]); 7] = [
        ("nothing", |_, _| {}, &["a", "b", "c", "d"]),
        ("middle denies b", |m, _| drop(restrict(m, None, vec!["b".into()]).unwrap()), &["a", "c", "d"]),
        // The middle's own shadow of `a` is inherited by the leaf, so the chain's restriction names it too.
        ("middle denies a", |m, _| drop(restrict(m, None, vec!["a".into()]).unwrap()), &["b", "c", "d"]),
        ("leaf denies c", |_, l| drop(restrict(l, None, vec!["c".into()]).unwrap()), &["a", "b", "d"]),
        ("leaf allows a", |_, l| drop(restrict(l, Some(vec!["a".into()]), vec![]).unwrap()), &["a", "d"]),
        (
            "several intersect",
            |_, l| {
                restrict(l, Some(vec!["a".into(), "b".into()]), vec![]).unwrap();
                restrict(l, Some(vec!["b".into(), "c".into()]), vec![]).unwrap();
            },
            &["b", "d"],
        ),
        (
            "allow and deny",
            |_, l| drop(restrict(l, Some(vec!["a".into(), "b".into()]), vec!["a".into()]).unwrap()),
            &["b", "d"],
        ),
    ];
    for (case, restricts, expected) in cases {
        let root = Context::root("root");
        let middle = root.child("middle").unwrap();
        let leaf = middle.child("leaf").unwrap();
        for (scope, name) in [(&root, "a"), (&root, "b"), (&middle, "c"), (&middle, "a"), (&leaf, "d")] {
            register(scope, probe(name)).unwrap();
        }
        restricts(&middle, &leaf);
        assert_eq!(names(&leaf), expected, "{case}");
        // The root is never restricted by what stands below it.
        assert_eq!(names(&root), ["a", "b"], "{case}");
    }
}

#[test]
fn r_007_a_scopes_own_layer_is_never_filtered() {
    let root = Context::root("root");
    let child = root.child("child").unwrap();
    register(&root, probe("t")).unwrap();
    restrict(&child, None, vec!["t".into()]).unwrap();
    assert!(resolve(&child, "t").is_none());
    register(&child, probe("t")).unwrap();
    assert!(resolve(&child, "t").is_some());
}

#[test]
fn r_008_a_restriction_says_something_about_what_is_inherited_and_lifts_by_itself() {
    let root = Context::root("root");
    let child = root.child("child").unwrap();
    register(&root, probe("a")).unwrap();
    register(&child, probe("own")).unwrap();
    let refused = [
        (&root, None, vec!["a".into()], "needs a child scope: the root inherits nothing"),
        (&child, None, vec![], "names neither what to allow nor what to deny"),
        (&child, None, vec!["none".into()], "names `none`, which the scope does not inherit"),
        (&child, Some(vec!["none".into()]), vec![], "names `none`, which the scope does not inherit"),
        (&child, None, vec!["own".into()], "names `own`, which the scope does not inherit"),
        (&child, Some(vec![RESERVED.into()]), vec![], "names `run_code`, which the scope does not inherit"),
    ];
    for (scope, allow, deny, why) in refused {
        let fault = restrict(scope, allow, deny).unwrap_err();
        assert_eq!(fault.to_string(), format!("a restriction in the scope `{}` {why}", scope.name()));
    }
    // Deny lets later names in, allow does not; each lifts by itself.
    let deny = restrict(&child, None, vec!["a".into()]).unwrap();
    register(&root, probe("later")).unwrap();
    assert_eq!(names(&child), ["later", "own"]);
    let allow = restrict(&child, Some(vec!["a".into()]), vec![]).unwrap();
    assert_eq!(names(&child), ["own"]);
    deny.end();
    assert_eq!(names(&child), ["a", "own"]);
    register(&root, probe("latest")).unwrap();
    assert_eq!(names(&child), ["a", "own"]);
    allow.end();
    assert_eq!(names(&child), ["a", "later", "latest", "own"]);
}

#[tokio::test]
async fn r_009_a_restricted_tool_is_neither_told_nor_run() {
    let rig = Rig::new();
    rig.probe("hidden", answers("never"));
    rig.probe("seen", answers("ok"));
    rig.plays([Play::Calls(vec![("c1", "hidden", "{}")]), Play::Text("done")]);
    let agent = rig.agent();
    restrict(agent.context(), None, vec!["hidden".into()]).unwrap();
    prompt(&agent, &Cancel::new()).await;
    assert_pairs(&agent, &["c1"]);
    assert_eq!(text(&results(&agent)[0]), r#"Error: unknown tool "hidden""#);
    let told: Vec<_> = rig.player.requests.lock().unwrap()[0].tools.iter().map(|t| t.name.clone()).collect();
    assert_eq!(told, ["seen"]);
    // Policy sees it, no body and no finalizer of it run.
    assert_eq!(rig.counts.tally(), [1, 1, 0, 0, 1, 0, 1]);
}

#[test]
fn r_010_schemas_are_detached_and_in_one_order_whatever_the_order_of_registration() {
    let mut bytes = Vec::new();
    for order in [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]] {
        let root = Context::root("root");
        for name in order {
            register(&root, probe(name)).unwrap();
        }
        let mut told = schemas(&root);
        bytes.push(Json::of(&told).unwrap());
        told[0].name = "mutated".into();
        told[0].parameters = json("{}");
        assert_eq!(schemas(&root)[0].name, "a");
    }
    assert!(bytes.windows(2).all(|w| w[0] == w[1]));
}

#[test]
fn r_011_a_registration_ends_once_and_the_name_is_free_again() {
    let root = Context::root("root");
    let first = register(&root, probe("t")).unwrap();
    first.end();
    first.end();
    let second = register(&root, probe("t")).unwrap();
    // The first handle does not end the second registration.
    first.end();
    assert!(resolve(&root, "t").is_some());
    drop(second);
    assert!(resolve(&root, "t").is_some());
}

type Told = Arc<std::sync::Mutex<Vec<String>>>;

/// Hears of changes on a scope, as `name: what scope tools`.
fn hears(scope: &Context, name: &'static str, told: &Told) {
    let told = Arc::clone(told);
    let hear = move |c: &ToolsChanged<'_>| {
        told.lock().unwrap().push(format!("{name}: {:?} {} {}", c.what, c.scope, c.names.join(",")));
    };
    sees_in::<ToolsChange, _>(scope, hear);
}

#[tokio::test]
async fn r_013_changes_of_tools_and_restrictions_are_told_around_and_inside_the_scope_and_guards_are_not() {
    let root = Context::root("root");
    let (child, sibling) = (root.child("child").unwrap(), root.child("sibling").unwrap());
    let told = Told::default();
    let new = || std::mem::take(&mut *told.lock().unwrap());
    for (scope, name) in [(&root, "r"), (&child, "c"), (&sibling, "s")] {
        hears(scope, name, &told);
    }
    let a = register(&root, probe("a")).unwrap();
    register(&root, probe("b")).unwrap();
    assert_eq!(new()[..3], ["r: Registered root a", "c: Registered root a", "s: Registered root a"]);
    let own = register(&child, probe("own")).unwrap();
    assert_eq!(new(), ["r: Registered child own", "c: Registered child own"]);
    let restriction = restrict(&child, Some(vec!["b".into()]), vec!["a".into()]).unwrap();
    assert_eq!(new(), ["r: Restricted child a,b", "c: Restricted child a,b"]);
    let guard = child.guard(sluice_harness::point::tools::Guard::new("g", |_| None)).unwrap();
    guard.end();
    assert!(register(&root, probe("a")).is_err(), "a refused registration is no change");
    assert!(new().is_empty());
    for _ in 0..2 {
        restriction.end();
        own.end();
        a.end();
    }
    let ends = ["r: Lifted child a,b", "c: Lifted child a,b", "r: Unregistered child own", "c: Unregistered child own"];
    let all = new();
    assert_eq!((&all[..4], all.len()), (&ends.map(str::to_owned)[..], 7));
    // A scope that ends takes its tools with it, and those around it hear of that.
    register(&child, probe("late")).unwrap();
    new();
    child.dispose(Duration::from_secs(60)).await;
    assert_eq!(new(), ["r: Unregistered child late", "c: Unregistered child late"]);
}

#[test]
fn r_011_an_observer_that_panics_takes_a_registration_back_and_keeps_no_end_from_happening() {
    let root = Context::root("root");
    let child = root.child("child").unwrap();
    let fine = register(&root, probe("fine")).unwrap();
    let told = Told::default();
    hears(&root, "before", &told);
    let grumpy = root.observe::<ToolsChange>(Grumpy).unwrap();
    hears(&root, "after", &told);
    let fault = register(&root, probe("t")).unwrap_err();
    let why = "was taken back, because an observer of `tools/change` failed: not today";
    assert_eq!(fault.to_string(), format!("the tool `t` {why}"));
    assert_eq!(names(&root), ["fine"]);
    // Only who heard of it hears that it is gone.
    assert_eq!(*told.lock().unwrap(), ["before: Registered root t", "before: Unregistered root t"]);
    let fault = restrict(&child, None, vec!["fine".into()]).unwrap_err();
    assert_eq!(fault.to_string(), format!("a restriction in the scope `child` {why}"));
    assert_eq!(names(&child), ["fine"]);
    fine.end();
    assert!(names(&root).is_empty());
    assert_eq!(told.lock().unwrap().last().unwrap(), "after: Unregistered root fine");
    grumpy.end();
    register(&root, probe("t")).unwrap();
    assert_eq!(names(&root), ["t"]);
}

/// An observer that panics at everything.
struct Grumpy;

impl Observer<ToolsChange> for Grumpy {
    fn observe(&self, _: &ToolsChanged<'_>) {
        panic!("not today");
    }
}

#[tokio::test]
async fn r_016_a_tool_that_is_taken_away_while_it_runs_keeps_its_call_and_finalizer() {
    let rig = Rig::new();
    let slot: Arc<std::sync::Mutex<Option<sluice_harness::context::Registration>>> = Arc::default();
    let mine = Arc::clone(&slot);
    let tool = Probe::new(
        "probe",
        &rig.counts,
        Arc::new(move |_| {
            mine.lock().unwrap().take().unwrap().end();
            Box::pin(std::future::ready(Ok(json(r#""ok""#))))
        }),
    );
    *slot.lock().unwrap() = Some(registry::register(&rig.root, Arc::new(tool)).unwrap());
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "ok");
    assert_eq!(rig.counts.tally(), [1; 7]);
}
