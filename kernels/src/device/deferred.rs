//! Asynchronous readback: results of an operation, which the host reads when it needs them.

/// Values that a device may still be computing or copying.
///
/// [`Deferred::wait`] waits for the operation on a GPU and for all work launched before it. The processor's values are
/// available at once.
#[must_use]
pub struct Deferred<R>(Values<R>);

enum Values<R> {
    Ready(Vec<R>),
    #[cfg(feature = "cuda")]
    Pending(Box<dyn FnOnce() -> Vec<R>>),
}

impl<R> Deferred<R> {
    /// Values that are available.
    pub fn ready(values: Vec<R>) -> Self {
        Self(Values::Ready(values))
    }

    /// Values that `fetch` waits for.
    #[cfg(feature = "cuda")]
    pub(crate) fn later(fetch: impl FnOnce() -> Vec<R> + 'static) -> Self {
        Self(Values::Pending(Box::new(fetch)))
    }

    /// These values and others, combined.
    pub fn join(self, other: Self, join: impl FnOnce(Vec<R>, Vec<R>) -> Vec<R> + 'static) -> Self
    where
        R: 'static,
    {
        match (self.0, other.0) {
            (Values::Ready(these), Values::Ready(those)) => Self::ready(join(these, those)),
            #[cfg(feature = "cuda")]
            (these, those) => Self::later(move || join(Self(these).wait(), Self(those).wait())),
        }
    }

    /// The values, once they are available.
    pub fn wait(self) -> Vec<R> {
        match self.0 {
            Values::Ready(values) => values,
            #[cfg(feature = "cuda")]
            Values::Pending(fetch) => fetch(),
        }
    }
}

impl<R> std::fmt::Debug for Deferred<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Values::Ready(values) => write!(f, "Deferred: {} values", values.len()),
            #[cfg(feature = "cuda")]
            Values::Pending(_) => write!(f, "Deferred"),
        }
    }
}
