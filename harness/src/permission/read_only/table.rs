//! The documented list of programs that only read, with what makes each of them do more.

use super::Word;

/// A program of the list.
pub(super) struct Entry {
    /// Its name, as it must be written.
    pub(super) name: &'static str,
    /// Which options it may have.
    pub(super) options: Options,
    /// Its operands are files whose content it prints.
    pub(super) reads_files: bool,
    /// Whether, with these arguments, it goes through folders by itself.
    pub(super) reads_trees: fn(&[Word]) -> bool,
}

/// Which options keep a program reading only.
#[derive(Clone, Copy)]
pub(super) enum Options {
    /// All it has.
    Any,
    /// These: letters of short options (their values may hold digits and `,.:+`), and names of long ones.
    Known(&'static str, &'static [&'static str]),
    /// A check of its own over all arguments.
    Checked(fn(&[Word]) -> bool),
    /// All it has but these, which let it read elsewhere; a file name that a pattern becomes is not taken for one.
    AllBut(fn(&[Word]) -> bool),
}

impl Options {
    /// Whether no option can make the program do more.
    pub(super) fn are_free(self) -> bool {
        matches!(self, Self::Any | Self::AllBut(_))
    }

    /// Whether these arguments keep it reading only.
    pub(super) fn allow(self, arguments: &[Word]) -> bool {
        match self {
            Self::Any => true,
            Self::Known(short, long) => arguments.iter().all(|word| is_known(&word.text, short, long)),
            Self::Checked(check) => check(arguments),
            Self::AllBut(excluded) => !excluded(arguments),
        }
    }
}

/// Whether a word is no option, or one of the known ones.
pub(super) fn is_known(word: &str, short: &str, long: &[&str]) -> bool {
    if let Some(name) = word.strip_prefix("--") {
        return name.is_empty() || long.contains(&name.split('=').next().unwrap_or(name));
    }
    match word.strip_prefix('-') {
        None => true,
        Some(letters) => letters.chars().all(|c| short.contains(c) || c.is_ascii_digit() || ",.:+".contains(c)),
    }
}

impl Entry {
    /// How many leading arguments are a script and no path.
    pub(super) fn script_words(&self, arguments: &[Word]) -> usize {
        if self.name == "sed" { arguments.len().min(2) } else { 0 }
    }
}

/// The entry of a program.
pub(super) fn find(program: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.name == program)
}

const fn plain(name: &'static str) -> Entry {
    Entry { name, options: Options::Any, reads_files: false, reads_trees: never }
}

const fn reading(name: &'static str, options: Options) -> Entry {
    Entry { name, options, reads_files: true, reads_trees: never }
}

fn never(_: &[Word]) -> bool {
    false
}

fn always(_: &[Word]) -> bool {
    true
}

fn recursive(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        let text = word.text.as_str();
        text.starts_with("--rec")
            || text.starts_with("--deref")
            || text.starts_with("--dir")
            || (text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R', 'd']))
    })
}

const TABLE: &[Entry] = &[
    plain("ls"),
    plain("pwd"),
    plain("echo"),
    plain("true"),
    plain("false"),
    plain("stat"),
    plain("du"),
    plain("df"),
    plain("whoami"),
    plain("id"),
    plain("uname"),
    plain("which"),
    plain("type"),
    plain("basename"),
    plain("dirname"),
    plain("realpath"),
    plain("readlink"),
    plain("printenv"),
    plain("tr"),
    reading("cat", Options::Any),
    reading("head", Options::Any),
    reading("tail", Options::Any),
    reading("wc", Options::Known("clmwL", &["bytes", "chars", "lines", "words", "max-line-length"])),
    reading("cut", Options::Any),
    reading("nl", Options::Any),
    reading("column", Options::Any),
    reading("cmp", Options::Any),
    // Some programs of this name can edit in place.
    reading(
        "jq",
        Options::Checked(|words| !words.iter().any(|w| w.text.starts_with("-i") || w.text.starts_with("--in"))),
    ),
    // `-R` follows every link that it finds.
    Entry { name: "grep", options: Options::AllBut(follows_links), reads_files: true, reads_trees: recursive },
    Entry { name: "egrep", options: Options::AllBut(follows_links), reads_files: true, reads_trees: recursive },
    Entry { name: "fgrep", options: Options::AllBut(follows_links), reads_files: true, reads_trees: recursive },
    // `-r` follows links too.
    Entry {
        name: "diff",
        options: Options::Known("abBcdeiNqstuUwWyZx", DIFF),
        reads_files: true,
        reads_trees: recursive,
    },
    // `--pre` and `--hostname-bin` run programs, `-z` too; `-L` leaves the workspace.
    Entry {
        name: "rg",
        options: Options::Known("ABCFHINPSTUceghilmnopqstuvwx", RIPGREP),
        reads_files: true,
        reads_trees: always,
    },
    // Arithmetic and subscripts in their arguments can run code: see `inert`.
    Entry { name: "printf", options: Options::Checked(printf), reads_files: false, reads_trees: never },
    Entry { name: "test", options: Options::Checked(inert), reads_files: false, reads_trees: never },
    Entry { name: "[", options: Options::Checked(inert), reads_files: false, reads_trees: never },
    // `-o` writes, `--compress-program` runs a program, `-T` writes elsewhere.
    reading("sort", Options::Known("bcCdfghikmMnrRstuVz", SORT)),
    // A second operand is written.
    reading("uniq", Options::Checked(uniq)),
    // `-C` writes, `-z` runs programs, `-f` and `-m` read lists.
    reading("file", Options::Known("biLhkN", &["brief", "mime", "mime-type", "mime-encoding"])),
    // Anything but a format sets the clock.
    Entry { name: "date", options: Options::Checked(date), reads_files: false, reads_trees: never },
    Entry { name: "env", options: Options::Checked(<[Word]>::is_empty), reads_files: false, reads_trees: never },
    // Actions run, delete or write; `-L` and `-follow` leave the workspace.
    Entry { name: "find", options: Options::Checked(find_only), reads_files: false, reads_trees: never },
    // `-o` writes, `-R` may.
    Entry {
        name: "tree",
        options: Options::Known("adfiLIPshpugDFtrvCnN", &["dirsfirst", "noreport", "prune", "gitignore", "du"]),
        reads_files: false,
        reads_trees: never,
    },
    // `-n` with a printing script alone: other commands of sed write files and run programs.
    reading("sed", Options::Checked(sed)),
];

const DIFF: &[&str] = &[
    "brief",
    "unified",
    "context",
    "ignore-case",
    "ignore-all-space",
    "ignore-blank-lines",
    "new-file",
    "side-by-side",
    "color",
    "strip-trailing-cr",
    "exclude",
    "report-identical-files",
    "width",
    "text",
];

const RIPGREP: &[&str] = &[
    "files",
    "hidden",
    "no-heading",
    "heading",
    "line-number",
    "no-line-number",
    "ignore-case",
    "smart-case",
    "case-sensitive",
    "glob",
    "iglob",
    "type",
    "type-not",
    "type-list",
    "count",
    "count-matches",
    "files-with-matches",
    "files-without-match",
    "context",
    "after-context",
    "before-context",
    "max-count",
    "max-depth",
    "json",
    "stats",
    "sort",
    "sortr",
    "color",
    "no-ignore",
    "no-ignore-vcs",
    "fixed-strings",
    "word-regexp",
    "line-regexp",
    "only-matching",
    "multiline",
    "multiline-dotall",
    "pcre2",
    "regexp",
    "replace",
    "invert-match",
    "with-filename",
    "no-filename",
    "column",
    "trim",
    "vimgrep",
    "version",
    "help",
    "quiet",
    "text",
    "no-messages",
    "unrestricted",
    "max-columns",
    "passthru",
    "null",
];

const SORT: &[&str] = &[
    "numeric-sort",
    "general-numeric-sort",
    "human-numeric-sort",
    "version-sort",
    "month-sort",
    "random-sort",
    "reverse",
    "unique",
    "ignore-case",
    "ignore-leading-blanks",
    "dictionary-order",
    "stable",
    "key",
    "field-separator",
    "check",
    "merge",
    "zero-terminated",
    "sort",
];

/// Whether no argument holds text that a shell's own arithmetic would run.
fn inert(arguments: &[Word]) -> bool {
    arguments.iter().all(|word| !word.text.contains(['`', '$']))
}

/// `-v` assigns, and its subscript is evaluated.
fn printf(arguments: &[Word]) -> bool {
    inert(arguments) && arguments.first().is_none_or(|word| !word.text.starts_with('-'))
}

/// Whether a `grep` follows every link that it finds; an `R` in the value of another option counts as one.
fn follows_links(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        let text = word.text.as_str();
        text.starts_with("--deref") || (text.starts_with('-') && !text.starts_with("--") && text.contains('R'))
    })
}

fn uniq(arguments: &[Word]) -> bool {
    let operands = arguments.iter().filter(|word| !word.text.starts_with('-') || word.text == "-").count();
    operands <= 1 && !arguments.iter().any(|word| word.glob || word.text == "--")
}

fn date(arguments: &[Word]) -> bool {
    let mut value_follows = false;
    arguments.iter().all(|word| {
        if std::mem::take(&mut value_follows) {
            return true;
        }
        match word.text.as_str() {
            "-d" => {
                value_follows = true;
                true
            }
            "-u" | "-R" | "--utc" | "--universal" | "--rfc-email" => true,
            text => ["+", "-I", "--iso-8601", "--rfc-3339=", "--date="].iter().any(|start| text.starts_with(start)),
        }
    })
}

fn find_only(arguments: &[Word]) -> bool {
    const ACTS: &[&str] = &["-exec", "-ok", "-delete", "-fprint", "-fls", "-files0-from", "-L", "-follow", "-H"];
    arguments.iter().all(|word| !ACTS.iter().any(|act| word.text.starts_with(act)))
}

fn sed(arguments: &[Word]) -> bool {
    let [quiet, script, files @ ..] = arguments else { return false };
    matches!(quiet.text.as_str(), "-n" | "-nE" | "-En" | "-nr" | "-rn")
        && !script.glob
        && script.text.split(';').all(|command| prints_only(command.trim()))
        && files.iter().all(|file| !file.text.starts_with('-'))
}

/// `p` with an address of numbers, `$`, or one plain regular expression.
fn prints_only(command: &str) -> bool {
    let Some(address) = command.strip_suffix('p') else { return false };
    let numbers = address.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '$'));
    let expression = address.strip_prefix('/').and_then(|a| a.strip_suffix('/'));
    numbers || expression.is_some_and(|e| !e.is_empty() && !e.contains(['/', '\n', '\\']))
}
