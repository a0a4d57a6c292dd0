//! SessionEnd: nothing is decided; a hook that fails is said.

use std::time::Duration;

/// The budget of all handlers that declare no limit of their own (observed).
pub(crate) const DEFAULT_LIMIT: Duration = Duration::from_millis(1500);
