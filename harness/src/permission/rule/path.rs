//! Path patterns in the manner of `.gitignore`, with Claude Code's four anchors: `//absolute`, `~/home`, `/project` and
//! relative. Lexical: links are not followed.

use std::path::{Component, Path};

/// Where a pattern begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    /// The root of the file system.
    Absolute,
    /// The home folder.
    Home,
    /// The rule's anchor, the project folder.
    Anchor,
    /// Any folder: a pattern without a slash.
    Anywhere,
}

/// A path pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    root: Root,
    /// How many folders above its root it begins.
    up: usize,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of folders.
    Any,
    /// One name.
    Name(Vec<char>),
}

/// The folders that a pattern may refer to.
#[derive(Debug, Clone, Copy)]
pub struct Anchors<'a> {
    /// The home folder, where it is known.
    pub home: Option<&'a Path>,
    /// Folders that `/…` and relative patterns are read from; one match is enough.
    pub folders: &'a [&'a Path],
    /// Whether a pattern without a folder also speaks of files outside those folders.
    pub everywhere: bool,
}

impl PathPattern {
    pub(super) fn parse(text: &str) -> Self {
        let (root, rest) = if let Some(rest) = text.strip_prefix("//") {
            (Root::Absolute, rest)
        } else if text == "~" {
            (Root::Home, "")
        } else if let Some(rest) = text.strip_prefix("~/") {
            (Root::Home, rest)
        } else if let Some(rest) = text.strip_prefix('/').or_else(|| text.strip_prefix("./")) {
            (Root::Anchor, rest)
        } else if let Some(rest) = text.strip_prefix("**/") {
            (Root::Anywhere, rest)
        } else if text.trim_end_matches('/').contains('/') {
            (Root::Anchor, text)
        } else {
            (Root::Anywhere, text)
        };
        let mut segments = Vec::new();
        let mut up = 0;
        for part in rest.split('/') {
            match part {
                "" | "." => {}
                ".." => up += usize::from(segments.pop().is_none()),
                "**" => segments.push(Segment::Any),
                name => segments.push(Segment::Name(name.chars().collect())),
            }
        }
        Self { root, up, segments }
    }

    /// Whether an absolute path, or a folder above it, fits.
    #[must_use]
    pub fn matches(&self, path: &Path, anchors: Anchors<'_>) -> bool {
        match self.root {
            Root::Absolute => self.fits_below(path, Path::new("/")),
            Root::Home => anchors.home.is_some_and(|home| self.fits_below(path, home)),
            Root::Anchor => anchors.folders.iter().any(|folder| self.fits_below(path, folder)),
            Root::Anywhere => {
                let root = [Path::new("/")];
                let folders = if anchors.everywhere { &root[..] } else { anchors.folders };
                folders.iter().any(|folder| {
                    let names = names_below(path, folder);
                    names.is_some_and(|names| {
                        (0..names.len().max(1)).any(|at| self.fits(names.get(at..).unwrap_or_default()))
                    })
                })
            }
        }
    }

    fn fits_below(&self, path: &Path, folder: &Path) -> bool {
        let folder = folder.ancestors().nth(self.up).unwrap_or(folder);
        names_below(path, folder).is_some_and(|names| self.fits(&names))
    }

    /// Whether the segments fit the names or a beginning of them.
    fn fits(&self, names: &[Vec<char>]) -> bool {
        fit(&self.segments, names)
    }
}

fn names_below(path: &Path, folder: &Path) -> Option<Vec<Vec<char>>> {
    let below = path.strip_prefix(folder).ok()?;
    let mut names = Vec::new();
    for part in below.components() {
        if let Component::Normal(name) = part {
            names.push(name.to_string_lossy().chars().collect());
        }
    }
    Some(names)
}

/// Backtracks to the last `**` only, which is enough: each earlier one has done with its shortest match.
fn fit(segments: &[Segment], names: &[Vec<char>]) -> bool {
    let (mut segment, mut at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match segments.get(segment) {
            // A folder that fits covers what is in it.
            None => return true,
            Some(Segment::Any) => {
                retry = Some((segment + 1, at));
                segment += 1;
            }
            Some(Segment::Name(pattern)) if names.get(at).is_some_and(|name| name_fits(pattern, name)) => {
                segment += 1;
                at += 1;
            }
            Some(Segment::Name(_)) => match &mut retry {
                Some((after, from)) if *from < names.len() => {
                    *from += 1;
                    (segment, at) = (*after, *from);
                }
                _ => return false,
            },
        }
    }
}

/// `*`, `?` and `[…]` inside one name.
fn name_fits(pattern: &[char], name: &[char]) -> bool {
    let (mut piece, mut at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = match (pattern.get(piece), name.get(at)) {
            (None, None) => return true,
            (Some('*'), _) => {
                retry = Some((piece + 1, at));
                piece += 1;
                continue;
            }
            (Some('?'), Some(_)) => Some(1),
            (Some('['), Some(c)) => match class(pattern.get(piece..).unwrap_or_default(), *c) {
                Some((length, true)) => Some(length),
                Some((_, false)) => None,
                None => (*c == '[').then_some(1),
            },
            (Some('\\'), Some(c)) if pattern.get(piece + 1) == Some(c) => Some(2),
            (Some(p), Some(c)) if p == c => Some(1),
            _ => None,
        };
        match (step, &mut retry) {
            (Some(length), _) => {
                piece += length;
                at += 1;
            }
            (None, Some((after, from))) if *from < name.len() => {
                *from += 1;
                (piece, at) = (*after, *from);
            }
            (None, _) => return false,
        }
    }
}

/// The length of the class that `pattern` begins with, and whether it holds `c`; `None` when it is not closed.
fn class(pattern: &[char], c: char) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let start = if negated { 2 } else { 1 };
    let close = pattern.iter().skip(start + 1).position(|p| *p == ']')? + start + 1;
    let body = pattern.get(start..close)?;
    let mut found = false;
    let mut at = 0;
    while let Some(low) = body.get(at) {
        match (body.get(at + 1), body.get(at + 2)) {
            (Some('-'), Some(high)) => {
                found |= *low <= c && c <= *high;
                at += 3;
            }
            _ => {
                found |= *low == c;
                at += 1;
            }
        }
    }
    Some((close + 1, found != negated))
}
