//! Which step a request takes.
//!
//! Pure. The invariant: the answer depends on the request's index and the script alone.

use super::format::WhenExhausted;

/// Where a request finds itself in a list of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At this step.
    At(usize),
    /// After the end, where an empty answer ends the turn.
    Silence,
    /// After the end, where that is an error.
    Exhausted,
}

/// The place of the request that `index` others came before.
pub(super) fn place(len: usize, index: u64, when: WhenExhausted) -> Place {
    let count = len as u64;
    let at = |index: u64| usize::try_from(index).map_or(Place::Exhausted, Place::At);
    if index < count {
        return at(index);
    }
    match when {
        WhenExhausted::Stop => Place::Silence,
        WhenExhausted::Last if count > 0 => at(count - 1),
        WhenExhausted::Loop if count > 0 => at(index % count),
        WhenExhausted::Error | WhenExhausted::Last | WhenExhausted::Loop => Place::Exhausted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_its_place() {
        use Place::{At, Exhausted, Silence};
        use WhenExhausted::{Error, Last, Loop, Stop};
        for (len, index, when, expected) in [
            (2, 0, Error, At(0)),
            (2, 1, Error, At(1)),
            (2, 2, Error, Exhausted),
            (2, 2, Stop, Silence),
            (2, 7, Last, At(1)),
            (2, 2, Loop, At(0)),
            (2, 5, Loop, At(1)),
            (0, 0, Error, Exhausted),
            (0, 0, Stop, Silence),
            (0, 0, Last, Exhausted),
            (0, 3, Loop, Exhausted),
        ] {
            assert_eq!(place(len, index, when), expected, "{len} steps, request {index}, {when:?}");
        }
    }
}
