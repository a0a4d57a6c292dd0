//! How far a wait is moved from its round number, so that many agents that failed together do not come back together
//! . The same seed gives the same waits.

use std::time::Duration;

/// Whether back-off waits are moved. What a provider asked for never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Jitter {
    /// They are what the policy says.
    None,
    /// By up to a tenth either way.
    #[default]
    TenPercent,
}

impl Jitter {
    /// The wait of an attempt. The seed is the session's id, so no two sessions wait alike and one can be replayed.
    pub(super) fn moved(self, wait: Duration, seed: &str, request: u64) -> Duration {
        match self {
            Self::None => wait,
            Self::TenPercent => {
                // Thousandths of the wait, from 900 to 1100.
                let share = 900 + mixed(seed, request) % 201;
                wait.saturating_mul(u32::try_from(share).unwrap_or(1000)) / 1000
            }
        }
    }
}

/// A number that nothing can be told from: FNV-1a over the seed, then a finaliser for the low bits.
fn mixed(seed: &str, request: u64) -> u64 {
    let bytes = seed.bytes().chain(request.to_le_bytes());
    let sum =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    sum ^ (sum >> 33)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]

    use super::*;

    #[test]
    fn r_215_waits_are_moved_by_a_tenth_at_most_evenly_and_alike_for_one_seed() {
        let second = Duration::from_secs(1);
        let waits: Vec<_> = (0..2000).map(|n| Jitter::TenPercent.moved(second, "a session", n).as_millis()).collect();
        assert!(waits.iter().all(|ms| (900..=1100).contains(ms)));
        assert!(waits.contains(&900) && waits.contains(&1100), "both ends are reached");
        let mean = waits.iter().sum::<u128>() / 2000;
        assert!((990..=1010).contains(&mean), "{mean}");
        assert_eq!(Jitter::TenPercent.moved(second, "a session", 7).as_millis(), waits[7]);
        assert_ne!(Jitter::TenPercent.moved(second, "another", 7).as_millis(), waits[7]);
        assert_eq!(Jitter::None.moved(second, "a session", 7), second);
    }
}
