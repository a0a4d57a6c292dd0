//! The frozen surface of the engine: what plugins are written against, read from the sources and compared with
//! `tests/frozen/surface.txt` and with the tables of `docs/engine.md`.
//!
//! A change of a point, a seam or a durable event fails here until it was looked at twice: `UPDATE_EXPECT=1` writes
//! the surface anew, and the page must have the new row and the new mark.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail bluntly"
)]

#[path = "frozen/read.rs"]
mod read;

use std::collections::BTreeMap;
use std::path::Path;

use read::{Code, Kind};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/engine.md")).unwrap()
}

/// The rows of a page's table below a heading: the cells, without their backticks.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no `## {heading}`"));
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("|---"));
    let cells = |row: &str| {
        let inner = row.trim_matches('|').replace("\\|", "/");
        inner.split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    rows.skip(1).map(cells).collect()
}

/// A page's table by its first column.
fn by_name(page: &str, heading: &str) -> BTreeMap<String, Vec<String>> {
    let rows = table(page, heading);
    let count = rows.len();
    let named: BTreeMap<_, _> = rows.into_iter().map(|row| (row[0].trim_matches('`').to_owned(), row)).collect();
    assert_eq!(named.len(), count, "`## {heading}` names something twice");
    named
}

/// FNV-1a: a mark that changes with the text.
fn mark(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

#[test]
fn the_surface_is_as_it_was_frozen() {
    let surface = Code::read(root()).surface();
    expect_test::expect_file!["frozen/surface.txt"].assert_eq(&surface);
    let wanted = format!("Surface `{}`.", mark(&surface));
    assert!(
        page().contains(&wanted),
        "docs/engine.md was not looked at since the surface changed; it ends with: {wanted}"
    );
}

#[test]
fn the_page_has_a_row_for_every_point_with_its_shape() {
    let page = page();
    let mut rows = by_name(&page, "Points");
    for point in &Code::read(root()).points {
        let row =
            rows.remove(&point.name).unwrap_or_else(|| panic!("docs/engine.md: no row for the point `{}`", point.name));
        assert_eq!(row[1], point.kind.word(), "the shape of `{}`", point.name);
        assert!(
            row[2].contains(&format!("`{}`", point.view)),
            "what a listener of `{}` sees: `{}`",
            point.name,
            point.view
        );
        if point.kind == Kind::Waterfall && point.decision != "()" {
            let named = format!("`{}`", point.decision);
            assert!(row[3].contains(&named), "what a listener of `{}` answers: {named}", point.name);
        }
    }
    // Two of the shapes have no trait of points: they are mounted by methods of their own.
    for (name, shape) in [("guards", "guard"), ("tools/execute", "waterfall")] {
        assert_eq!(rows.remove(name).unwrap()[1], shape, "{name}");
    }
    assert!(rows.is_empty(), "docs/engine.md: points that do not exist: {:?}", rows.keys());
}

#[test]
fn the_page_has_a_row_for_every_seam() {
    let page = page();
    let mut rows = by_name(&page, "Seams");
    for seam in &Code::read(root()).seams {
        let row =
            rows.remove(&seam.name).unwrap_or_else(|| panic!("docs/engine.md: no row for the seam `{}`", seam.name));
        assert!(row[1].contains(&format!("`{}`", seam.item)), "the trait of `{}` is `{}`", seam.name, seam.item);
    }
    assert!(rows.is_empty(), "docs/engine.md: seams that do not exist: {:?}", rows.keys());
}

#[test]
fn the_page_has_a_row_for_every_durable_event_with_its_owner_and_fields() {
    let page = page();
    let mut rows = by_name(&page, "Events");
    for event in &Code::read(root()).events {
        let row =
            rows.remove(&event.name).unwrap_or_else(|| panic!("docs/engine.md: no row for the event `{}`", event.name));
        assert_eq!(row[1], event.owner, "the owner of `{}`", event.name);
        assert_eq!(row[2].trim_matches('`'), event.fields.join(", "), "the fields of `{}`", event.name);
        assert_eq!(row[3], if event.ignorable { "yes" } else { "no" }, "whether `{}` may be skipped", event.name);
    }
    assert!(rows.is_empty(), "docs/engine.md: events that do not exist: {:?}", rows.keys());
}

#[test]
fn every_example_is_short_and_is_played_by_a_test() {
    let tests = std::fs::read_to_string(root().join("harness/tests/engine/examples.rs")).unwrap();
    let mut found = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < 60, "examples/{name} has {lines} lines; an example fits on a screen");
        assert!(tests.contains(&name), "examples/{name} is played by no test");
        found += 1;
    }
    assert!(found >= 4, "{found} examples");
}
