//! The policy where it is mounted: innermost, and again as a guard.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::super::{Behaviour, Mode, PermissionStore, PolicyPlugin, Rule};
use crate::cancel::Cancel;
use crate::content::Block;
use crate::context::{Context, Rank};
use crate::ids::{CallId, SessionId};
use crate::json::Json;
use crate::log::event::{FORMAT_VERSION, Header};
use crate::log::{SessionLog, now_rfc3339};
use crate::pipeline::{CallRequest, Gated, gate, seal};
use crate::point::tools::{Allow, AskOrigin, DeniedBy, PolicyView, PreAnswer, PreExecute, PreTool};
use crate::point::{Listener, ListenerFault, Next};
use crate::scene::{SessionFacts, SessionScene, StopLatch};
use crate::seam::live::Silent;
use crate::seam::model::ModelInfo;
use crate::tool::{BodyView, CallCard, CallFacts, CallKind, Content, Tool, ToolFailure};
use crate::{Fut, Plugin};

struct Shell;

impl Tool for Shell {
    fn name(&self) -> &str {
        "Bash"
    }
    fn description(&self) -> &str {
        "runs"
    }
    fn parameters(&self) -> Json {
        Json::parse(r#"{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}"#).unwrap()
    }
    fn output(&self) -> Json {
        Json::empty_object()
    }
    fn facts(&self, input: &Json) -> CallFacts {
        CallFacts { command: input.str_at("command").map(str::to_owned), ..CallFacts::default() }
    }
    fn execute<'a>(&'a self, _: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(std::future::ready(Ok(Json::null())))
    }
    fn render(&self, _: &Json, _: &Json) -> Content {
        Vec::<Block>::new()
    }
    fn present_call(&self, _: &Json) -> CallCard {
        CallCard { title: String::new(), kind: CallKind::Execute, items: Vec::new(), locations: Vec::new() }
    }
}

/// A listener that allows whatever the policy says.
struct Overruling;

impl Listener<PreExecute> for Overruling {
    fn name(&self) -> &str {
        "overruling"
    }
    fn decide<'a>(&'a self, _: PolicyView<'a>, _: Next<'a, PreExecute>) -> Fut<'a, Result<PreAnswer, ListenerFault>> {
        Box::pin(std::future::ready(Ok(PreAnswer::new(PreTool::Allow(Allow::plain())))))
    }
}

/// A listener that notes the questions that come from further in.
struct Hearing(Arc<Mutex<Vec<Question>>>);

type Question = (Option<String>, AskOrigin);

impl Listener<PreExecute> for Hearing {
    fn name(&self) -> &str {
        "hearing"
    }
    fn decide<'a>(
        &'a self,
        _: PolicyView<'a>,
        next: Next<'a, PreExecute>,
    ) -> Fut<'a, Result<PreAnswer, ListenerFault>> {
        Box::pin(async move {
            let answer = next.delegate().await?;
            if let PreTool::Ask { reason, origin } = &answer.decision {
                self.0.lock().unwrap().push((reason.clone(), *origin));
            }
            Ok(answer)
        })
    }
}

/// Gates one command; `Ok` when it passes, else who denied and in which words.
async fn gated(command: &str, prepare: impl FnOnce(&Context)) -> Result<(), (DeniedBy, String)> {
    let dir = tempfile::tempdir().unwrap();
    let context = Context::root("test");
    let permissions = Arc::new(PermissionStore::new(Mode::Default));
    for (behaviour, rule) in [(Behaviour::Deny, "Bash(rm *)"), (Behaviour::Allow, "Bash(make *)")] {
        permissions.add_rules("test", Path::new("/p"), behaviour, vec![Rule::parse(rule).unwrap()]);
    }
    let id = SessionId::fresh();
    let header = Header {
        r#type: "session".to_owned(),
        version: FORMAT_VERSION,
        id: id.clone(),
        created_at: now_rfc3339(),
        cwd: PathBuf::from("/p"),
        parent: None,
    };
    let log = SessionLog::create(dir.path(), header).unwrap();
    let model = ModelInfo { provider: "p".to_owned(), model: "m".to_owned(), effort: None, context_window: None };
    let session = SessionFacts::new(id, "/p".into(), "/p".into(), "/state".into(), permissions, model);
    crate::registry::register(&context, Arc::new(Shell)).unwrap();
    PolicyPlugin::new(None).mount(&context).unwrap();
    prepare(&context);
    let owned = SessionScene {
        context: context.clone(),
        session: Arc::new(session),
        log: log.handle(),
        live: Arc::new(Silent),
        cancel: Cancel::new(),
        latch: Arc::new(StopLatch::new()),
        turn: None,
    };
    let arguments = serde_json::json!({ "command": command }).to_string();
    let request = CallRequest { call_id: CallId::new("c1"), name: "Bash".to_owned(), arguments };
    let outcome = match gate(seal(&context, &owned.session, request), owned.scene()).await {
        Gated::Pass(_) => Ok(()),
        Gated::Refused(candidate) => {
            let (reason, _) = candidate.into_reason();
            Err((reason.by, reason.text))
        }
    };
    log.close().await.unwrap();
    outcome
}

#[tokio::test]
async fn the_policy_answers_where_nobody_else_does() {
    assert_eq!(gated("ls", |_| {}).await, Ok(()));
    assert_eq!(gated("make x", |_| {}).await, Ok(()));
    let denied = "Permission to use Bash with command rm b has been denied.".to_owned();
    assert_eq!(gated("rm b", |_| {}).await, Err((DeniedBy::Rule, denied)));
}

#[tokio::test]
async fn the_policys_question_reaches_outer_listeners_with_its_origin() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Hearing(Arc::clone(&heard));
    let mount = |context: &Context| {
        context.listen::<PreExecute>(Rank::OUTER, listener).unwrap();
    };
    gated("touch a", mount).await.unwrap_err();
    let reason = "Permission to use Bash was requested but has not been granted.".to_owned();
    assert_eq!(*heard.lock().unwrap(), [(Some(reason), AskOrigin::Mode)]);
}

#[tokio::test]
async fn r_069_per1_the_guard_denies_what_an_outer_listener_allowed() {
    let overrule = |context: &Context| {
        context.listen::<PreExecute>(Rank::NORMAL, Overruling).unwrap();
    };
    assert_eq!(gated("touch a", overrule).await, Ok(()));
    assert_eq!(gated("make x && rm b", overrule).await.unwrap_err().0, DeniedBy::Rule);
}
