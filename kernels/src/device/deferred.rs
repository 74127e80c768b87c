//! What an operation tells the host, read when it is needed: a GPU goes on meanwhile.

/// Values that a device is working out or copying.
///
/// Of operations on a GPU the host gets only the promise; [`Deferred::wait`] waits for the operation and for what was
/// launched before it. The processor's values are there at once. One that is dropped is never waited for.
#[must_use]
pub struct Deferred<R>(State<R>);

enum State<R> {
    Known(Vec<R>),
    #[cfg(feature = "cuda")]
    Coming(Box<dyn FnOnce() -> Vec<R>>),
}

impl<R> Deferred<R> {
    /// Of values that are there.
    pub fn of(values: Vec<R>) -> Self {
        Self(State::Known(values))
    }

    /// Of values that `fetch` waits for.
    #[cfg(feature = "cuda")]
    pub(crate) fn later(fetch: impl FnOnce() -> Vec<R> + 'static) -> Self {
        Self(State::Coming(Box::new(fetch)))
    }

    /// What `join` makes of these values and others.
    pub fn joined(self, other: Self, join: impl FnOnce(Vec<R>, Vec<R>) -> Vec<R> + 'static) -> Self
    where
        R: 'static,
    {
        match (self.0, other.0) {
            (State::Known(these), State::Known(those)) => Self::of(join(these, those)),
            #[cfg(feature = "cuda")]
            (these, those) => Self::later(move || join(Self(these).wait(), Self(those).wait())),
        }
    }

    /// The values, once they are there.
    pub fn wait(self) -> Vec<R> {
        match self.0 {
            State::Known(values) => values,
            #[cfg(feature = "cuda")]
            State::Coming(fetch) => fetch(),
        }
    }
}

impl<R> std::fmt::Debug for Deferred<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            State::Known(values) => write!(f, "Deferred of {} values", values.len()),
            #[cfg(feature = "cuda")]
            State::Coming(_) => write!(f, "Deferred to come"),
        }
    }
}
