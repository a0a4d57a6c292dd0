//! The word that was probably meant: for errors that name an unknown key, model or event.
//!
//! A guess is made only where it is likely; a far word is no help.

/// The known word nearest to `word`, if one is near enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many single-character changes (or swaps of neighbours) make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let mut last: Option<char> = None;
    for (i, own) in a.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(i + 1);
        for (j, other) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&row, j) + usize::from(own != *other)).min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            let swapped = j > 0 && last == Some(*other) && b.get(j.wrapping_sub(1)) == Some(&own);
            if swapped {
                best = best.min(at(&before, j.wrapping_sub(1)) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
        last = Some(own);
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_far_ones_are_not() {
        let known = ["model", "hooks", "limits", "permissions"];
        assert_eq!(nearest("modle", known), Some("model"));
        assert_eq!(nearest("hook", known), Some("hooks"));
        assert_eq!(nearest("permission", known), Some("permissions"));
        assert_eq!(nearest("Model", known), Some("model"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }
}
