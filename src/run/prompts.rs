//! Where a run's prompts come from: the command line with what is piped beside it, or lines on stdin.

use serde::Deserialize;
use serde_json::Value;
use sluice_harness::content::{Block, plain_text};
use tokio::sync::mpsc::Receiver;

use super::{say, text_prompt};
use crate::cli::PromptSource;
use crate::fault::Fault;
use crate::images;
use crate::stdin::{self, FIRST_BYTE, Stdin};

/// Prompts, one turn each.
pub(crate) enum Prompts {
    /// One, not given yet.
    Once(Option<Vec<Block>>),
    /// Lines as they come; those that come during a turn wait.
    Lines {
        from: Receiver<std::io::Result<String>>,
        /// From 1, for messages.
        number: u64,
    },
}

impl Prompts {
    /// Reads what must be there before anything runs.
    ///
    /// # Errors
    /// An empty prompt, or an unreadable stdin.
    pub(crate) async fn open(source: PromptSource) -> Result<Self, Fault> {
        let text = match source {
            PromptSource::StreamJson => {
                let from = stdin::lines().map_err(|e| unreadable(&e))?;
                return Ok(Self::Lines { from, number: 0 });
            }
            PromptSource::Argument(prompt) => beside(prompt).await?,
            PromptSource::ArgumentAndStdin(prompt) => {
                joined(prompt, &stdin::whole().await.map_err(|e| unreadable(&e))?)
            }
            PromptSource::Unnamed if stdin::is_terminal() => {
                return Err(Fault::usage(
                    "no-prompt",
                    "there is no prompt",
                    "give one: sluice run \"what is here?\", or pipe it in: echo 'what is here?' | sluice run",
                ));
            }
            PromptSource::Stdin | PromptSource::Unnamed => {
                let text = stdin::whole().await.map_err(|e| unreadable(&e))?;
                text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
            }
        };
        if text.trim().is_empty() {
            return Err(Fault::usage(
                "empty-prompt",
                "the prompt is empty",
                "give one as an argument or on standard input (after --allowed-tools or --disallowed-tools a prompt is \
                 taken for a rule: put it first, or after --)",
            ));
        }
        no_command(&text)?;
        Ok(Self::Once(Some(text_prompt(text))))
    }

    /// The next prompt; `None` when there are no more. Cancel-safe.
    ///
    /// # Errors
    /// A line that is no user message.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Block>>, Fault> {
        match self {
            Self::Once(prompt) => Ok(prompt.take()),
            Self::Lines { from, number } => loop {
                let Some(line) = from.recv().await else { return Ok(None) };
                let line = line.map_err(|e| unreadable(&e))?;
                *number += 1;
                if line.trim().is_empty() {
                    continue;
                }
                return message(&line, *number).map(Some);
            },
        }
    }
}

async fn beside(prompt: String) -> Result<String, Fault> {
    match stdin::beside_a_prompt().await.map_err(|e| unreadable(&e))? {
        Stdin::Nothing => Ok(prompt),
        Stdin::Text(text) => Ok(joined(prompt, &text)),
        Stdin::Silent => {
            let seconds = FIRST_BYTE.as_secs();
            say(&format!("sluice: nothing came on standard input within {seconds} s; going on without it"));
            Ok(prompt)
        }
    }
}

fn joined(prompt: String, piped: &str) -> String {
    let piped = piped.strip_suffix('\n').unwrap_or(piped);
    if piped.is_empty() { prompt } else { format!("{prompt}\n\n{piped}") }
}

/// Refuses `/name …`: it would be a command, and taken for a prompt it would do something else than was meant.
fn no_command(text: &str) -> Result<(), Fault> {
    let word = text.split_whitespace().next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    match text.strip_prefix('/') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().skip(1).all(is_name) => {
            Err(Fault::usage(
                "unknown-command",
                format!("there is no command `{word}`"),
                "a prompt that begins with `/` is a command; put other words before it to send it to the model",
            ))
        }
        _ => Ok(()),
    }
}

fn unreadable(fault: &std::io::Error) -> Fault {
    Fault::environment("stdin", format!("standard input cannot be read: {fault}"), "check what is piped in")
}

#[derive(Deserialize)]
struct Line {
    r#type: String,
    message: Body,
}

#[derive(Deserialize)]
struct Body {
    role: String,
    content: Value,
}

#[derive(Deserialize)]
struct ContentBlock {
    r#type: String,
    text: Option<String>,
    source: Option<Source>,
}

/// Where an image's bytes are.
#[derive(Deserialize)]
struct Source {
    r#type: String,
    #[serde(default)]
    media_type: String,
    #[serde(default)]
    data: String,
}

fn message(line: &str, number: u64) -> Result<Vec<Block>, Fault> {
    let wrong = |why: String| {
        Fault::usage(
            "stream-json-line",
            format!("line {number} of the input is no user message: {why}"),
            "write {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"…\"}}, one a line",
        )
    };
    let line: Line = serde_json::from_str(line).map_err(|e| {
        let text = e.to_string();
        // Its own line number is always 1.
        let cause = text.rsplit_once(" at line ").map_or(text.as_str(), |(cause, _)| cause);
        wrong(format!("{cause} at column {}", e.column()))
    })?;
    if line.r#type != "user" || line.message.role != "user" {
        return Err(wrong(format!("its type is `{}` and its role `{}`", line.r#type, line.message.role)));
    }
    let block = |block: Value| {
        let block: ContentBlock =
            serde_json::from_value(block).map_err(|e| wrong(format!("a content block is wrong: {e}")))?;
        match (block.r#type.as_str(), block.text, block.source) {
            ("text", Some(text), _) => Ok(Block::text(text)),
            ("text", None, _) => Err(wrong("a text block has no `text`".to_owned())),
            ("image", _, Some(source)) if source.r#type == "base64" => {
                images::block(&source.media_type, &source.data).map_err(|why| wrong(format!("it holds an image {why}")))
            }
            ("image", _, Some(source)) => Err(wrong(format!(
                "an image's `source` is of the type `{}`; only `base64` is supported",
                source.r#type
            ))),
            ("image", _, None) => Err(wrong("an image block has no `source`".to_owned())),
            (other, _, _) => Err(wrong(format!("a content block of type `{other}` is not supported"))),
        }
    };
    let content = match line.message.content {
        Value::String(text) => text_prompt(text),
        Value::Array(blocks) => blocks.into_iter().map(block).collect::<Result<_, _>>()?,
        _ => return Err(wrong("its content is neither a text nor a list of blocks".to_owned())),
    };
    let text = plain_text(&content);
    if text.trim().is_empty() {
        return Err(wrong("its content is empty".to_owned()));
    }
    no_command(&text)?;
    Ok(content)
}
