//! To be filled: see the crate's place in the workspace manifest.
