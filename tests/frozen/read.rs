//! Reads the engine's surface out of the sources, as text: points, seams, events, and the types they are made of.
//!
//! It knows the shapes in which this project writes them and nothing more of Rust; what it cannot find is a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The shapes of a point with a trait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Waterfall,
    Notification,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waterfall => "waterfall",
            Self::Notification => "notification",
        }
    }
}

pub(crate) struct PointItem {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) view: String,
    pub(crate) decision: String,
}

pub(crate) struct SeamItem {
    pub(crate) name: String,
    pub(crate) item: String,
}

pub(crate) struct EventItem {
    pub(crate) name: String,
    pub(crate) owner: String,
    pub(crate) fields: Vec<String>,
    pub(crate) ignorable: bool,
}

/// What the sources say.
pub(crate) struct Code {
    /// The text of every source file of the crates, without comments, by crate.
    files: Vec<(String, String)>,
    /// The types that stand beside the points: what views show and answers are made of.
    beside: Vec<String>,
    pub(crate) points: Vec<PointItem>,
    pub(crate) seams: Vec<SeamItem>,
    pub(crate) events: Vec<EventItem>,
}

const CRATES: [(&str, &str); 5] = [
    ("harness/src", "harness"),
    ("tools/src", "tools"),
    ("bridges/src", "bridges"),
    ("providers/src", "providers"),
    ("src", "sluice"),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Without comments, attributes and test modules; one blank between words.
fn bare(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.starts_with("#["));
    lines.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text from an opening brace to its end, both left out; `text` begins before the brace.
fn braced(text: &str) -> &str {
    let open = text.find('{').unwrap();
    let mut depth = 0;
    for (at, c) in text[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text[open + 1..open + at].trim();
        }
    }
    panic!("no end of {}", &text[..text.len().min(80)]);
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let rest = text.split(from).nth(1)?;
    rest.split(to).next().map(str::trim)
}

/// Splits at commas that stand in no bracket.
fn members(body: &str) -> Vec<String> {
    let (mut all, mut depth, mut one) = (Vec::new(), 0_i32, String::new());
    let mut before = ' ';
    for c in body.chars() {
        match c {
            '(' | '{' | '[' | '<' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            '>' if before != '-' && before != '=' => depth -= 1,
            _ => {}
        }
        before = c;
        if c == ',' && depth == 0 {
            all.push(std::mem::take(&mut one).trim().to_owned());
        } else {
            one.push(c);
        }
    }
    all.push(one.trim().to_owned());
    all.retain(|member| !member.is_empty());
    all
}

fn field_names(body: &str) -> Vec<String> {
    let name = |field: &str| {
        let field = field.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        field.split(':').next().unwrap().trim().trim_start_matches("r#").to_owned()
    };
    members(body).iter().map(|field| name(field)).collect()
}

impl Code {
    pub(crate) fn read(root: &Path) -> Self {
        let (mut files, mut beside) = (Vec::new(), Vec::new());
        for (folder, owner) in CRATES {
            let mut paths = Vec::new();
            sources(&root.join(folder), &mut paths);
            for path in paths {
                let text = bare(&std::fs::read_to_string(&path).unwrap());
                if path.starts_with(root.join("harness/src/point")) {
                    beside.extend(defined(&text));
                }
                files.push((owner.to_owned(), text));
            }
        }
        let mut code = Self { files, beside, points: Vec::new(), seams: Vec::new(), events: Vec::new() };
        code.find_points();
        code.find_seams();
        code.find_events();
        code
    }

    /// Every `impl … for … {` of a trait: what it is for, and its body.
    fn implementations(&self, of: &str) -> Vec<(String, String, String)> {
        let mut found = Vec::new();
        for (owner, text) in &self.files {
            let wanted = format!("impl {of} for ");
            for part in text.match_indices(&wanted).map(|(at, _)| &text[at + wanted.len()..]) {
                let name = part.split('{').next().unwrap().trim().to_owned();
                if !name.starts_with('$') {
                    found.push((owner.clone(), name, braced(part).to_owned()));
                }
            }
        }
        found
    }

    fn find_points(&mut self) {
        let word = |body: &str, from: &str| {
            let found = between(body, from, ";").unwrap_or_default();
            found.split('<').next().unwrap().to_owned()
        };
        for (_, _, body) in self.implementations("Point") {
            self.points.push(PointItem {
                name: between(&body, "= \"", "\"").unwrap().to_owned(),
                kind: Kind::Waterfall,
                view: word(&body, "type View<'a> = "),
                decision: word(&body, "type Decision = "),
            });
        }
        for (_, _, body) in self.implementations("Note") {
            self.points.push(PointItem {
                name: between(&body, "= \"", "\"").unwrap().to_owned(),
                kind: Kind::Notification,
                view: word(&body, "type Snapshot<'a> = "),
                decision: String::new(),
            });
        }
        self.points.sort_by(|a, b| a.name.cmp(&b.name));
    }

    fn find_seams(&mut self) {
        for (_, item, body) in self.implementations("Seam") {
            let item = item.rsplit("::").next().unwrap().trim_start_matches("dyn ").to_owned();
            self.seams.push(SeamItem { name: between(&body, "= \"", "\"").unwrap().to_owned(), item });
        }
        self.seams.sort_by(|a, b| a.name.cmp(&b.name));
    }

    fn find_events(&mut self) {
        for (owner, item, body) in self.implementations("EventKind") {
            let fields = field_names(braced(&self.definition(&item)));
            let name = between(&body, "= \"", "\"").unwrap().to_owned();
            let ignorable = body.contains("IGNORABLE: bool = true");
            self.events.push(EventItem { name, owner, fields, ignorable });
        }
        let kinds = self.files.iter().find_map(|(_, text)| text.split("} kinds! {").nth(1)).expect("the core kinds");
        let mut rest = braced(&format!("{{{kinds}")).to_owned();
        while let Some((head, _)) = rest.split_once('{') {
            let (_, head) = head.split_once('=').unwrap();
            let body = braced(&rest).to_owned();
            self.events.push(EventItem {
                name: head.split('"').nth(1).unwrap().to_owned(),
                owner: "harness".to_owned(),
                fields: field_names(&body),
                ignorable: head.contains("ignorable true"),
            });
            let end = rest.find(&body).unwrap() + body.len() + 1;
            rest = rest[end..].trim_start_matches([' ', '}']).to_owned();
        }
        self.events.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// The definition of a type or trait of that name: its head and body.
    fn definition(&self, name: &str) -> String {
        self.find_definition(name).unwrap_or_else(|| panic!("no definition of {name}"))
    }

    fn find_definition(&self, name: &str) -> Option<String> {
        for (_, text) in &self.files {
            for word in ["struct", "enum", "trait", "type"] {
                let wanted = format!("pub {word} ");
                for part in text.match_indices(&wanted).map(|(at, _)| &text[at + wanted.len()..]) {
                    let head = part.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                    if head != name {
                        continue;
                    }
                    let (brace, end) = (part.find('{'), part.find(';'));
                    return Some(match (brace, end) {
                        (Some(brace), end) if end.is_none_or(|end| brace < end) => {
                            format!("{word} {}{{ {} }}", &part[..brace], braced(part))
                        }
                        (_, Some(end)) => format!("{word} {}", &part[..end]),
                        _ => panic!("{name} has no end"),
                    });
                }
            }
        }
        None
    }

    /// What of a type a plugin can reach: public fields, variants, and the signatures of public methods.
    fn reach(&self, name: &str) -> Vec<String> {
        let Some(definition) = self.find_definition(name) else { return Vec::new() };
        let (head, body) = match definition.split_once('{') {
            Some((head, _)) => (head.trim().to_owned(), braced(&definition).to_owned()),
            None => return vec![definition],
        };
        let mut lines = vec![head.clone()];
        let all = if head.starts_with("trait") { signatures(&body) } else { members(&body) };
        lines.extend(all.into_iter().filter(|m| !head.starts_with("struct") || m.starts_with("pub ")));
        for (_, text) in &self.files {
            for part in text.match_indices("impl").map(|(at, word)| &text[at + word.len()..]) {
                let of = part.split('{').next().unwrap();
                let of = of.trim().trim_start_matches("<'a>").trim();
                if of.split('<').next().unwrap() == name {
                    let own = braced(part);
                    lines.extend(
                        own.split("pub ")
                            .skip(1)
                            .filter(|m| m.starts_with("fn ") || m.starts_with("async fn "))
                            .map(|m| format!("pub {}", m.split('{').next().unwrap().trim())),
                    );
                }
            }
        }
        lines
    }

    /// All of it as text, one thing a line, sorted.
    pub(crate) fn surface(&self) -> String {
        let mut out = String::new();
        let mut types: BTreeSet<String> =
            ["GuardView", "Reason", "Guard", "Wrapper", "Dispatch", "Attempt", "Scene", "Plugin"]
                .map(str::to_owned)
                .into();
        for point in &self.points {
            let answer = if point.kind == Kind::Waterfall { format!(" -> {}", point.decision) } else { String::new() };
            out.push_str(&format!("point {} {} {}{answer}\n", point.name, point.kind.word(), point.view));
            types.insert(point.view.clone());
            types.insert(point.decision.clone());
        }
        for seam in &self.seams {
            out.push_str(&format!("seam {} {}\n", seam.name, seam.item));
            types.insert(seam.item.clone());
        }
        for event in &self.events {
            let skip = if event.ignorable { " ignorable" } else { "" };
            out.push_str(&format!("event {} {}{skip}: {}\n", event.name, event.owner, event.fields.join(", ")));
        }
        types.remove("");
        let mut reached: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while let Some(name) = types.pop_first() {
            let lines = self.reach(&name);
            let named = |other: &&String| lines.iter().any(|line| words(line).any(|word| word == other.as_str()));
            types.extend(self.beside.iter().filter(named).filter(|other| !reached.contains_key(*other)).cloned());
            types.remove(&name);
            reached.insert(name, lines);
        }
        for (name, lines) in reached.iter().filter(|(_, lines)| !lines.is_empty()) {
            out.push_str(&format!("\ntype {name}\n"));
            for line in lines {
                out.push_str(&format!("  {line}\n"));
            }
        }
        out
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The public types that a text defines.
fn defined(text: &str) -> Vec<String> {
    let of = |word: &str| {
        let wanted = format!("pub {word} ");
        let starts = text.match_indices(&wanted).map(|(at, _)| at + wanted.len()).collect::<Vec<_>>();
        starts.into_iter().map(|at| words(&text[at..]).next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    [of("struct"), of("enum")].concat()
}

/// The signatures of a trait's methods.
fn signatures(body: &str) -> Vec<String> {
    let starts = body.match_indices("fn ").filter(|(at, _)| *at == 0 || body[..*at].ends_with([' ', '}', ';']));
    starts
        .map(|(at, _)| {
            let rest = &body[at..];
            let end = rest.find([';', '{']).unwrap_or(rest.len());
            rest[..end].trim().to_owned()
        })
        .collect()
}
