//! The literal forms in which hook texts reach the model (reference 7.2), observed with Claude Code 2.1.332.
//!
//! The forms stand for themselves: tags around them for models without a mid-conversation system role are the
//! provider's work.

use crate::core::output::Printed;

/// `<HookName>` of a tool event.
pub(crate) fn hook_name(event: &str, subject: &str) -> String {
    format!("{event}:{subject}")
}

/// An added context.
pub(crate) fn context(hook: &str, text: &str) -> String {
    format!("{hook} hook additional context: {text}")
}

/// Plain stdout where it is context.
pub(crate) fn success(hook: &str, text: &str) -> String {
    format!("{hook} hook success: {text}")
}

/// A denial before a tool.
pub(crate) fn denial(hook: &str, reason: &str) -> String {
    format!("{hook} hook error: {reason}")
}

/// A question without a reason of its own.
pub(crate) fn asked(hook: &str) -> String {
    format!("Hook {hook} asked for confirmation for this tool")
}

/// A block after a tool, or beside a Stop block's feedback.
pub(crate) fn blocking_error(hook: &str, command: &str, reason: &str) -> String {
    format!("{hook} hook blocking error from command: \"{command}\": {reason}")
}

/// A rewrite that the tool's schema refuses.
pub(crate) fn invalid_rewrite(tool: &str, why: &str) -> String {
    format!("PreToolUse hook for {tool} returned updatedInput that failed schema validation: {why}")
}

/// A vetoed prompt, with the prompt unless it is to be left out.
pub(crate) fn prompt_blocked(reason: &str, prompt: Option<&str>) -> String {
    match prompt {
        Some(prompt) => {
            format!("UserPromptSubmit operation blocked by hook:\n{reason}\n\nOriginal prompt: {prompt}")
        }
        None => format!("UserPromptSubmit operation blocked by hook:\n{reason}"),
    }
}

/// A prompt stopped by `continue: false`.
pub(crate) fn prompt_stopped(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("Operation stopped by hook: {reason}"),
        None => "Operation stopped by hook".to_owned(),
    }
}

/// What tells the model that a Stop hook speaks and not the user.
const STOP_PREAMBLE: &str = "The text below comes from a hook that runs when a turn would end. It was configured for \
this session; no person typed it just now. Take it into account, and go on only with what it asks for and the user's \
own request allows.";

/// A Stop block's feedback, as a user message.
pub(crate) fn stop_feedback(reason: &str) -> String {
    format!("<system-reminder>\n{STOP_PREAMBLE}\nStop hook feedback:\n{reason}\n</system-reminder>")
}

/// A Stop hook's context, as a user message.
pub(crate) fn stop_context(text: &str) -> String {
    format!("<system-reminder>\n{}\n</system-reminder>", context("Stop", text))
}

/// The number of characters beyond which a text is saved to a file.
pub(crate) const LONG_TEXT: usize = 10_000;
/// How many characters of a saved text the model still reads.
const PREVIEW: usize = 2000;

/// What stands in the place of a text that was saved to a file.
pub(crate) fn persisted(printed: &Printed, path: &str) -> String {
    let size = kilobytes(printed.whole());
    let saved = match printed.missing {
        0 => "Full output saved to".to_owned(),
        _ => format!("Only its first {} were kept, and saved to", kilobytes(printed.text.len() as u64)),
    };
    let preview: String = printed.text.chars().take(PREVIEW).collect();
    format!(
        "<persisted-output>\nOutput too large ({size}). {saved}: {path}\n\nPreview (first 2KB):\n{preview}\n...\n\
         </persisted-output>"
    )
}

fn kilobytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) / 1024;
    format!("{}.{}KB", tenths / 10, tenths % 10)
}
