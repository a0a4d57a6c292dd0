//! One lock a file: whoever changes a file in this process takes its turn.
//!
//! The invariant: two holders never have the same key, and a lock that nobody holds or waits for takes no room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::FileKey;
use tokio::sync::OwnedMutexGuard;

/// The locks of one provider.
#[derive(Debug, Default)]
pub struct FileLocks(Mutex<HashMap<FileKey, Weak<tokio::sync::Mutex<()>>>>);

/// A file's lock, held until this is dropped.
#[derive(Debug)]
pub struct FileLock {
    _held: OwnedMutexGuard<()>,
}

impl FileLocks {
    /// Waits for a file's lock; `None` when the signal fires first.
    pub async fn hold(&self, key: &FileKey, cancel: &Cancel) -> Option<FileLock> {
        let lock = self.of(key);
        tokio::select! {
            biased;
            _ = cancel.cancelled() => None,
            held = lock.lock_owned() => Some(FileLock { _held: held }),
        }
    }

    fn of(&self, key: &FileKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(key.clone(), Arc::downgrade(&lock));
        lock
    }
}
