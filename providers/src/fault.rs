//! Faults that every model words alike.
//!
//! What only one provider can fail at is worded there.

use sluice_harness::cancel::CancelCause;
use sluice_harness::seam::model::{FaultKind, ModelFault, Retry};

/// The fault of a request whose signal fired. The loop knows its own signal and seldom shows this.
pub(crate) fn cancelled(cause: &CancelCause) -> ModelFault {
    ModelFault {
        kind: FaultKind::Internal,
        message: format!("the request to the model was cancelled by {cause}."),
        retry: Retry::No,
    }
}
