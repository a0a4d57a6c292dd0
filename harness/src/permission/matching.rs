//! What a rule says of a call, read in two ways: strictly for deny and ask rules, narrowly for allow rules.
//!
//! Strict: one part of the call is enough, wrappers are looked behind, and what cannot be told counts as a match.
//! Narrow: the whole of what is looked at must fit, and what cannot be told does not.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use super::judge::Place;
use super::read_only::{self, Folders};
use super::rule::{Anchors, PathPattern, Rule, Specifier};
use super::shell::behind::{self, Reach};
use super::shell::{Flow, Scan, SimpleCommand, Word, join, scan};
use super::store::RuleEntry;
use crate::json::Json;
use crate::scene::lexical;
use crate::tool::CallFacts;

/// Tools that an `Edit` rule speaks of.
const WRITERS: &[&str] = &["Edit", "Write", "MultiEdit", "NotebookEdit"];
/// Tools that a `Read` rule speaks of; for the searching ones it is judged by the folder they search.
const READERS: &[&str] = &["Read", "NotebookRead", "Glob", "Grep", "LS"];
/// Programs whose arguments name files that they change: looked at for `Edit` rules, as far as words can tell.
const WRITING_PROGRAMS: &[&str] = &[
    "tee", "touch", "rm", "rmdir", "mv", "cp", "ln", "sed", "truncate", "chmod", "chown", "dd", "install", "patch",
    "shred", "unlink", "perl", "ed", "ex", "vi", "vim", "nano", "rsync", "scp", "sponge",
];
/// Programs beyond the read-only list whose arguments name files that they read.
const READING_PROGRAMS: &[&str] = &[
    "awk", "gawk", "less", "more", "xxd", "od", "hexdump", "strings", "base64", "cp", "source", ".", "tac", "tee",
    "sed", "bat", "vi", "vim", "nano", "dd", "rsync", "scp", "curl", "tar", "zip", "openssl", "sha256sum", "md5sum",
    "paste", "rev", "fold", "fmt", "pr", "join", "comm", "split", "csplit", "look", "ul", "iconv", "expand",
    "unexpand", "gzip", "zcat", "zless", "zgrep", "bzip2", "bzcat", "xz", "xzcat", "zstd", "base32", "perl", "python",
    "python3", "node", "ruby", "bash", "sh", "ln", "mv", "install", "wget", "ed", "ex", "view", "sha1sum", "cksum",
    "shuf", "tsort",
];

/// A call prepared for rules to look at.
pub(super) struct Call<'a> {
    pub(super) tool: &'a str,
    pub(super) facts: &'a CallFacts,
    input: &'a Json,
    pub(super) line: Option<Line<'a>>,
}

/// The command line of a call.
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    pub(super) scan: Scan,
    reach: Reach,
}

impl<'a> Call<'a> {
    pub(super) fn new(tool: &'a str, facts: &'a CallFacts, input: &'a Json) -> Self {
        let text = facts.command.as_deref().or_else(|| if tool == "Bash" { input.str_at("command") } else { None });
        let line = text.map(|text| {
            let scan = scan(text);
            let reach = behind::reach(&scan);
            Line { text, scan, reach }
        });
        Self { tool, facts, input, line }
    }

    /// The files that the call names, under each of their names.
    fn paths(&self, place: &Place<'_>) -> Vec<PathBuf> {
        let mut paths = self.named_paths(place);
        let others: Vec<_> = paths.iter().filter_map(|path| place.behind_links(path)).collect();
        paths.extend(others);
        paths
    }

    fn named_paths(&self, place: &Place<'_>) -> Vec<PathBuf> {
        if !self.facts.paths.is_empty() {
            return self.facts.paths.iter().map(|(path, _)| path.clone()).collect();
        }
        let named = ["file_path", "notebook_path", "path"].into_iter().filter_map(|key| self.input.str_at(key));
        named.map(|path| lexical(&place.cwd.join(path))).collect()
    }

    /// The words that a rule with a specifier of the tool's own is held against.
    fn own_words(&self) -> Vec<&str> {
        let keys: &[&str] = match self.tool {
            "Agent" | "Task" => &["subagent_type"],
            "Skill" => &["skill", "command", "name"],
            _ => return Vec::new(),
        };
        keys.iter().filter_map(|key| self.input.str_at(key)).collect()
    }
}

fn covers_tool(rule: &Rule, tool: &str) -> bool {
    rule.names_tool(tool)
        || (rule.tool() == "Edit" && WRITERS.contains(&tool))
        || (rule.tool() == "Read" && READERS.contains(&tool))
}

/// Whether a deny or ask rule speaks of the call.
pub(super) fn strictly(entry: &RuleEntry, call: &Call<'_>, place: &Place<'_>) -> bool {
    let rule = &entry.rule;
    match rule.specifier() {
        Specifier::Whole => covers_tool(rule, call.tool),
        Specifier::Command(pattern) => {
            rule.names_tool(call.tool)
                && call.line.as_ref().is_none_or(|line| {
                    let whole = pattern.matches(line.text.trim());
                    let parts = line.scan.commands.iter().any(|c| pattern.matches(&c.careful_text()));
                    let behind = line.reach.commands.iter().any(|words| {
                        pattern.matches(&join(words.iter().map(|w| w.text.as_str())))
                            || pattern.matches(&join(words.iter().map(|w| w.raw.as_str())))
                            || words.split_first().is_some_and(|(name, rest)| {
                                let rest = join(rest.iter().map(|w| w.text.as_str()));
                                behind::possible_name(name).is_some_and(|name| pattern.may_match(&name, &rest))
                            })
                    });
                    let searched = || {
                        let found = |words: &Vec<Word>| pattern.occurs_in(&join(words.iter().map(|w| w.text.as_str())));
                        pattern.occurs_in(line.text) || line.reach.commands.iter().any(found)
                    };
                    whole || parts || behind || (line.reach.opaque && searched())
                })
        }
        Specifier::Path(pattern) => {
            let mut folders: Vec<&Path> = vec![&entry.anchor, place.cwd];
            folders.extend(place.workspace.iter().map(PathBuf::as_path));
            let anchors = Anchors { home: place.home, folders: &folders, everywhere: true };
            if covers_tool(rule, call.tool) {
                let paths = call.paths(place);
                return paths.is_empty() || paths.iter().any(|path| pattern.matches(path, anchors));
            }
            call.line.as_ref().is_some_and(|line| touches(rule, pattern, anchors, line, place))
        }
        Specifier::Domain(pattern) => {
            rule.names_tool(call.tool)
                && call.input.str_at("url").and_then(host_of).is_none_or(|host| {
                    // A rule for a domain speaks of what lies below it too.
                    std::iter::successors(Some(host.as_str()), |name| name.split_once('.').map(|(_, parent)| parent))
                        .any(|name| pattern.matches(name))
                })
        }
        Specifier::Word(pattern) => {
            let own = call.own_words();
            let any_text =
                call.input.view().as_object().into_iter().flat_map(|o| o.values().filter_map(|v| v.as_str()));
            rule.names_tool(call.tool)
                && if own.is_empty() {
                    any_text.into_iter().any(|word| pattern.matches(word))
                } else {
                    own.iter().any(|word| pattern.matches(word.trim_start_matches('/')))
                }
        }
    }
}

/// Whether a path rule speaks of a file that a shell line names, as far as its words tell.
fn touches(rule: &Rule, pattern: &PathPattern, anchors: Anchors<'_>, line: &Line<'_>, place: &Place<'_>) -> bool {
    let (flow, names_files): (_, fn(&str) -> bool) = match rule.tool() {
        "Read" => (Flow::In, |name| read_only::reads_files(name) || READING_PROGRAMS.contains(&name)),
        "Edit" | "Write" => (Flow::Out, |name| WRITING_PROGRAMS.contains(&name)),
        _ => return false,
    };
    let folders = Folders::after(&line.scan, place.cwd);
    let hit = |text: &str| {
        let value = text.split_once('=').map(|(_, value)| value);
        let revision_path = text.split_once(':').map(|(_, path)| path);
        [Some(text), value, revision_path].into_iter().flatten().any(|text| {
            let below = |names: &[&str]| names.iter().find_map(|name| text.strip_prefix(name));
            let text = below(&["$PWD/", "${PWD}/"]).unwrap_or(text);
            let at_home = below(&["~/", "$HOME/", "${HOME}/"]).zip(place.home).map(|(rest, home)| home.join(rest));
            let named = at_home.unwrap_or_else(|| PathBuf::from(text));
            folders.each().any(|folder| {
                let path = folder.join(&named);
                let real = || place.behind_links(&path).is_some_and(|real| pattern.matches(&real, anchors));
                pattern.matches(&lexical(&path), anchors) || real()
            })
        })
    };
    let redirected =
        line.reach.redirects.iter().any(|r| (r.flow == flow || r.flow == Flow::Both) && hit(&r.target.text));
    redirected
        || line.reach.commands.iter().any(|words| {
            words.split_first().is_some_and(|(name, rest)| names_files(&name.text) && rest.iter().any(|w| hit(&w.text)))
        })
}

/// Whether an allow rule covers the whole call. A shell line is judged part by part instead, by `covers_part`.
pub(super) fn narrowly(entry: &RuleEntry, call: &Call<'_>, place: &Place<'_>) -> bool {
    let rule = &entry.rule;
    match rule.specifier() {
        Specifier::Whole => covers_tool(rule, call.tool),
        Specifier::Command(_) => false,
        Specifier::Path(pattern) => {
            let anchors = Anchors { home: place.home, folders: &[&entry.anchor], everywhere: false };
            let paths = call.paths(place);
            covers_tool(rule, call.tool) && !paths.is_empty() && paths.iter().all(|path| pattern.matches(path, anchors))
        }
        Specifier::Domain(pattern) => {
            rule.names_tool(call.tool)
                && call.input.str_at("url").and_then(host_of).is_some_and(|host| pattern.matches(&host))
        }
        Specifier::Word(pattern) => {
            rule.names_tool(call.tool)
                && call.own_words().first().is_some_and(|word| pattern.matches(word.trim_start_matches('/')))
        }
    }
}

/// Whether an allow rule covers one command of a shell line.
pub(super) fn covers_part(entry: &RuleEntry, tool: &str, part: &SimpleCommand) -> bool {
    let known = part.name().is_none_or(|name| !name.dynamic && !name.glob);
    match entry.rule.specifier() {
        Specifier::Command(pattern) => known && entry.rule.names_tool(tool) && pattern.matches(&part.careful_text()),
        Specifier::Whole | Specifier::Path(_) | Specifier::Domain(_) | Specifier::Word(_) => false,
    }
}

/// A host in one spelling: lower case, no dot at the end, an IPv6 address in its shortest form.
pub(super) fn spelt_host(host: &str) -> String {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host.parse::<Ipv6Addr>().map_or(host, |address| address.to_string())
}

/// The host of a URL in lower case; `None` when there is none to be sure of.
pub(super) fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.trim().split_once("://")?;
    let authority = rest.split(['/', '\\', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[').and_then(|h| h.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next()?,
    };
    let host = spelt_host(host);
    (!host.is_empty() && !host.contains(['%', ' ', '\t', '\n', '\r'])).then_some(host)
}
