//! The subcommands of git that only read, with the options known to keep them so.
//!
//! Options before the subcommand (`-c`, `-C`, `--exec-path`, `--git-dir`) are not among them: they can make any
//! subcommand run a program. A repository's own configuration is taken as the user's.

use super::Word;
use super::table::is_known;

/// `(subcommand, short options, long options, whether operands are welcome)`.
const SUBCOMMANDS: &[(&str, &str, &[&str], Operands)] = &[
    (
        "status",
        "sbvuz",
        &[
            "short", "branch", "porcelain", "long", "untracked-files", "ignored", "verbose", "show-stash",
            "ahead-behind", "no-renames",
        ],
        Operands::Any,
    ),
    ("log", SHOWING, SHOWN, Operands::Any),
    ("show", SHOWING, SHOWN, Operands::Any),
    ("diff", SHOWING, SHOWN, Operands::Any),
    (
        "rev-parse",
        "q",
        &[
            "show-toplevel",
            "abbrev-ref",
            "verify",
            "short",
            "is-inside-work-tree",
            "git-dir",
            "show-prefix",
            "show-cdup",
            "symbolic-full-name",
            "all",
            "branches",
            "tags",
            "remotes",
            "quiet",
            "git-common-dir",
            "is-bare-repository",
        ],
        Operands::Any,
    ),
    (
        "ls-files",
        "zomcdsutkv",
        &[
            "others", "modified", "cached", "deleted", "stage", "unmerged", "exclude-standard", "full-name",
            "error-unmatch", "ignored", "directory",
        ],
        Operands::Any,
    ),
    (
        "blame",
        "LwCMelsnfpt",
        &["porcelain", "line-porcelain", "show-email", "date", "root", "show-name", "show-number"],
        Operands::Any,
    ),
    (
        "describe",
        "",
        &[
            "tags", "always", "dirty", "long", "abbrev", "all", "exact-match", "contains", "match", "exclude",
            "first-parent",
        ],
        Operands::Any,
    ),
    ("branch", "arv", &["all", "remotes", "verbose", "show-current", "no-color", "color", "list"], Operands::WithList),
    ("tag", "n", &["list", "column", "no-color"], Operands::WithList),
    ("remote", "v", &["verbose"], Operands::None),
];

/// Short options of `log`, `show` and `diff`; `-O` reads an order file, `-o` belongs to others.
const SHOWING: &str = "pnsuwbMCRaiEFGSLUzcmtrlqvh";

const SHOWN: &[&str] = &[
    "stat",
    "shortstat",
    "numstat",
    "dirstat",
    "summary",
    "name-only",
    "name-status",
    "oneline",
    "graph",
    "all",
    "decorate",
    "no-decorate",
    "cached",
    "staged",
    "color",
    "no-color",
    "pretty",
    "format",
    "since",
    "until",
    "after",
    "before",
    "author",
    "committer",
    "grep",
    "invert-grep",
    "all-match",
    "max-count",
    "skip",
    "follow",
    "no-merges",
    "merges",
    "first-parent",
    "reverse",
    "date",
    "abbrev-commit",
    "no-abbrev-commit",
    "abbrev",
    "patch",
    "no-patch",
    "word-diff",
    "color-words",
    "ignore-all-space",
    "ignore-space-change",
    "ignore-blank-lines",
    "unified",
    "diff-filter",
    "find-renames",
    "find-copies",
    "no-renames",
    "left-right",
    "cherry-pick",
    "branches",
    "tags",
    "remotes",
    "topo-order",
    "date-order",
    "merge-base",
    "no-ext-diff",
    "no-textconv",
    "minimal",
    "patience",
    "histogram",
    "exit-code",
    "quiet",
    "full-index",
    "binary",
    "check",
    "compact-summary",
    "relative",
    "raw",
    "no-prefix",
    "source",
    "no-notes",
    "text",
    "function-context",
    "no-pager",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// They name what is shown.
    Any,
    /// They are patterns when `--list` is given, and names to create otherwise.
    WithList,
    /// They would be a command.
    None,
}

/// Whether the arguments of `git` make it read only.
pub(super) fn only_reads(arguments: &[Word]) -> bool {
    let arguments = match arguments {
        [first, rest @ ..] if first.text == "--no-pager" => rest,
        all => all,
    };
    let Some((subcommand, rest)) = arguments.split_first() else { return false };
    let Some((_, short, long, operands)) = SUBCOMMANDS.iter().find(|(name, ..)| *name == subcommand.text) else {
        return false;
    };
    let lists = rest.iter().any(|word| word.text == "--list");
    rest.iter().all(|word| {
        let is_operand = !word.text.starts_with('-') || word.text == "-";
        let welcome = match operands {
            Operands::Any => true,
            Operands::WithList => lists,
            Operands::None => false,
        };
        // `%G` makes git run a program that checks signatures.
        let leading_pattern = word.glob && word.text.starts_with(['*', '?', '[', '-']);
        is_known(&word.text, short, long) && (!is_operand || welcome) && !leading_pattern && !word.text.contains("%G")
    })
}
