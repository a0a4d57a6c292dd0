//! The engine's own events: facts, in the words of the log.
//!
//! Owners outside the engine declare theirs by implementing [`EventKind`]; the core ones are written only by the
//! typed handles of [`SessionLog`](super::SessionLog), which make their order and pairing hold.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agent::TurnEnd;
use crate::content::{Block, Role};
use crate::ids::{CallId, PromptId, Seq, SessionId, StepNumber, TurnId, TurnNumber};
use crate::json::Json;
use crate::point::tools::{AskOrigin, DeniedBy};
use crate::seam::approval::ApprovalOutcome;
use crate::seam::model::{StopReason, ToolSchema, Usage};
use crate::tool::ErrorInfo;

/// The version of the log format in the header.
pub const FORMAT_VERSION: u32 = 0;

/// A kind of event with its name in the log.
pub trait EventKind: Serialize + DeserializeOwned + Send + Sync {
    /// The `type` member.
    const TYPE: &'static str;
    /// Whether a reader that does not know this kind may skip it.
    const IGNORABLE: bool = false;
}

/// The first line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Always `session`.
    pub r#type: String,
    /// [`FORMAT_VERSION`].
    pub version: u32,
    /// The session's id, which is also the file's name.
    pub id: SessionId,
    /// RFC 3339 time of creation.
    pub created_at: String,
    /// The folder the session started in; absolute.
    pub cwd: PathBuf,
    /// The session this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
}

/// The names of the owners' kinds: what a log may hold beside [`CORE_TYPES`] and what does not say that it may be
/// skipped. A log with any other kind is refused, for this program would not know what it means; an owner
/// with a new kind either lists it here or marks it [`IGNORABLE`](EventKind::IGNORABLE).
pub const OWNER_TYPES: &[&str] =
    &["todo/write", "fs/observed", "hook/invoked", "hook/result", "tool/code-dispatch", "shell/cwd", LogRepaired::TYPE];

/// The log was found torn, or with an open turn, and was repaired; written by repair alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRepaired {
    /// How many bytes of a torn tail were cut off.
    pub torn_bytes: u64,
    /// How many events were written to close what was open.
    pub synthetic: u32,
}

impl EventKind for LogRepaired {
    const TYPE: &'static str = "log/repaired";
    const IGNORABLE: bool = true;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $type:literal $(ignorable $ign:literal)? { $($(#[$fdoc:meta])* $field:ident : $ty:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
            pub struct $name { $($(#[$fdoc])* pub $field: $ty),* }
            impl EventKind for $name {
                const TYPE: &'static str = $type;
                $(const IGNORABLE: bool = $ign;)?
            }
        )*
        /// The names of the engine's own kinds; owners may not use them.
        pub const CORE_TYPES: &[&str] = &[$($type),*];
    };
}

kinds! {
    /// A turn opened.
    TurnStart = "turn/start" {
        /// Its number.
        turn: TurnNumber,
        /// Its id.
        turn_id: TurnId,
        /// The prompt's id.
        prompt_id: PromptId,
    }
    /// A prompt as it came, durable before any hook; not model-visible.
    PromptReceived = "prompt/received" {
        /// The turn.
        turn: TurnNumber,
        /// The content.
        content: Vec<Block>,
    }
    /// A prompt was vetoed.
    PromptBlocked = "prompt/blocked" {
        /// The turn.
        turn: TurnNumber,
        /// The original content.
        content: Vec<Block>,
        /// The whole reason.
        reason: String,
        /// Who vetoed.
        by: String,
    }
    /// A step opened.
    StepStart = "step/start" {
        /// The turn.
        turn: TurnNumber,
        /// Its number in the turn.
        step: StepNumber,
    }
    /// A step closed.
    StepEnd = "step/end" {
        /// The turn.
        turn: TurnNumber,
        /// Its number in the turn.
        step: StepNumber,
    }
    /// A message in the user's role, as the model sees it.
    UserMessage = "user/message" {
        /// The turn.
        turn: TurnNumber,
        /// `user` for a person, else who wrote it.
        source: String,
        /// The content.
        content: Vec<Block>,
    }
    /// A context that hooks or tools added, as the model sees it.
    ContextAdded = "context/message" {
        /// The turn.
        turn: TurnNumber,
        /// Who added it.
        source: String,
        /// Its true role.
        role: Role,
        /// The text.
        text: String,
    }
    /// What a request carried beside the messages: written when it differs from the last one.
    RequestHeader = "request/header" {
        /// The turn.
        turn: TurnNumber,
        /// `initial`, `resume` or `change`.
        why: String,
        /// The provider.
        provider: String,
        /// The model.
        model: String,
        /// The system prompt.
        system: String,
        /// The tools in order.
        tools: Vec<ToolSchema>,
        /// The output limit, if any.
        max_output_tokens: Option<u64>,
    }
    /// A request is about to be sent: the log up to here is what it is built from.
    RequestSent = "request/sent" ignorable true {
        /// The turn.
        turn: TurnNumber,
        /// The step.
        step: StepNumber,
        /// From 1; above 1 it is a retry in the same step.
        attempt: u32,
        /// How many requests came before it in the session.
        index: u64,
    }
    /// A request failed and will be sent again.
    RequestRetry = "request/retry" ignorable true {
        /// The turn.
        turn: TurnNumber,
        /// The step.
        step: StepNumber,
        /// Which attempt failed.
        attempt: u32,
        /// The failure's kind.
        kind: String,
        /// Its words.
        message: String,
        /// The wait before the next attempt, in milliseconds.
        delay_ms: u64,
    }
    /// The model's whole answer of a step; exactly one for each answered request.
    AssistantMessage = "assistant/message" {
        /// The turn.
        turn: TurnNumber,
        /// The step.
        step: StepNumber,
        /// The content; may be empty, and is then not sent back to a model.
        content: Vec<Block>,
        /// The provider.
        provider: String,
        /// The model.
        model: String,
        /// Why it stopped; absent when it was cut off.
        stop_reason: Option<StopReason>,
        /// Tokens, where the provider said.
        usage: Option<Usage>,
        /// Whether a cancellation cut it off.
        interrupted: bool,
    }
    /// A call is about to be judged; written before anything of it runs.
    ToolCall = "tool/call" {
        /// The turn.
        turn: TurnNumber,
        /// The step.
        step: StepNumber,
        /// The call.
        call_id: CallId,
        /// The tool's name.
        name: String,
        /// The model's own argument text.
        arguments: String,
        /// The sealed input, where the arguments could be sealed.
        input: Option<Json>,
    }
    /// A gate decided.
    ToolGate = "tool/gate" ignorable true {
        /// The turn.
        turn: TurnNumber,
        /// The call.
        call_id: CallId,
        /// `pre-execute`, `approval`, `guard`, `execute`, `post-execute`.
        stage: String,
        /// Who decided.
        owner: String,
        /// `allow`, `deny`, `ask`, `block`, `change`, `fault`, `cancelled`.
        verdict: String,
        /// Why.
        reason: Option<String>,
        /// How long the stage took, in milliseconds.
        ms: u64,
    }
    /// A rewritten call is dispatched in place of the model's own.
    RewriteDispatch = "tool/rewrite-dispatch" {
        /// The turn.
        turn: TurnNumber,
        /// The model's call.
        call_id: CallId,
        /// The nested call that runs.
        sub_call_id: CallId,
        /// The tool's name.
        name: String,
        /// The nested call's sealed input.
        input: Json,
    }
    /// The one result of a call.
    ToolResult = "tool/result" {
        /// The turn.
        turn: TurnNumber,
        /// The step.
        step: StepNumber,
        /// The call.
        call_id: CallId,
        /// What the model reads.
        content: Vec<Block>,
        /// Whether it failed or was denied.
        is_error: bool,
        /// The structured error, if any.
        error: Option<ErrorInfo>,
        /// Who denied it, if anybody.
        denied_by: Option<DeniedBy>,
        /// What presentation needs on replay.
        meta: Option<Json>,
        /// The event of its call; absent only for a call that was never recorded.
        call_seq: Option<Seq>,
    }
    /// Somebody is asked.
    ApprovalAsked = "approval/asked" {
        /// The turn.
        turn: TurnNumber,
        /// Unique in the session.
        id: String,
        /// The call.
        call_id: CallId,
        /// The tool's name.
        tool: String,
        /// Why.
        reason: Option<String>,
        /// Who wants it asked.
        origin: AskOrigin,
    }
    /// The one answer.
    ApprovalDecided = "approval/decided" {
        /// The turn.
        turn: TurnNumber,
        /// The question.
        id: String,
        /// Who answered, by the name it was mounted with, such as `client`; absent when nobody did.
        by: Option<String>,
        /// The answer.
        outcome: ApprovalOutcome,
    }
    /// The end of what a forked session inherited; written once, when it is made.
    SeedEnd = "session/end-seed" ignorable true {
        /// The session it was forked from.
        parent: SessionId,
    }
    /// A turn closed.
    TurnEnded = "turn/end" {
        /// Its number.
        turn: TurnNumber,
        /// The one reason.
        end: TurnEnd,
    }
}
