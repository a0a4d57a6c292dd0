//! Nothing but a place for the tests beside it.
