//! Progress, log and events of a campaign.
//!
//! | module | what it holds |
//! |---|---|
//! | [`progress`], [`time_left`] | the lines at the bottom of the terminal, and the time that a run has left; estimated in [`crate::cost`] |
//! | [`logging`] | the log file, and its gist on the terminal |
//! | [`event_stream`] | events for other programs |
//! | [`streams`] | standard output and standard error, which cannot always be written |
//! | [`probe`] | phases that tests of kills look at |

pub(crate) mod event_stream;
pub(crate) mod logging;
pub(crate) mod probe;
pub(crate) mod progress;
pub(crate) mod streams;
pub(crate) mod time_left;
