//! Identifiers: typed, so that one cannot be passed for another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes the text as it stands.
            #[must_use]
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A session, named by one UUID (version 7) everywhere: log and transcript file names, payloads, ACP.
    SessionId
}
text_id! {
    /// A tool call as the model named it; unique in a session.
    CallId
}
text_id! {
    /// A prompt, for the Claude dialect's `prompt_id`; a UUID.
    PromptId
}
text_id! {
    /// A turn, for the Codex dialect's `turn_id`; a UUID (version 7).
    TurnId
}
text_id! {
    /// One streamed assistant message, for ACP's `messageId`.
    MessageId
}

macro_rules! fresh_id {
    ($($name:ident),*) => { $(impl $name {
        /// A new UUID (version 7).
        #[must_use]
        pub fn fresh() -> Self {
            Self(uuid::Uuid::now_v7().to_string())
        }
    })* };
}
fresh_id!(SessionId, PromptId, TurnId, MessageId);

/// The number of a turn in its session, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnNumber(pub u32);

/// The number of a step in its turn, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepNumber(pub u32);

/// The position of an event in its log, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);
