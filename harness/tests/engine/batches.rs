//! batches
