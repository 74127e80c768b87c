//! Memory of the host, held back for the stages that are being done: one that has just begun has not taken yet what it will.

use crate::error::PipelineError;

#[derive(Debug, Default)]
pub(super) struct Room {
    /// Bytes that were free when nothing was in progress; `None` where the system does not say.
    free: Option<f64>,
    /// Bytes held back for each stage that is being done.
    taken: Vec<f64>,
}

impl Room {
    /// Holds back `most` bytes for a stage that needs `least` of them, if they are there beside what is being done; alone
    /// every stage may begin that finds what it needs. `available`: bytes that are free now; `clear` frees what can be, for
    /// a stage alone.
    ///
    /// # Errors
    /// [`PipelineError::Memory`] if there is not even room for this stage alone.
    pub(super) fn take(
        &mut self,
        least: f64,
        most: f64,
        available: impl Fn() -> Option<f64>,
        clear: impl Fn(),
    ) -> Result<bool, PipelineError> {
        let within = |free: Option<f64>, bytes: f64| free.is_none_or(|free| bytes <= free);
        if self.taken.is_empty() && !within(available(), most) {
            clear();
        }
        let now = available();
        if self.taken.is_empty() {
            self.free = now;
            if let Some(available) = now.filter(|now| least > *now) {
                return Err(PipelineError::Memory { needed: least, available });
            }
        } else if !within(now, most) || !within(self.free, self.taken.iter().sum::<f64>() + most) {
            return Ok(false);
        }
        self.taken.push(most);
        Ok(true)
    }

    /// Gives back what [`Room::take`] has held back for a stage.
    pub(super) fn give_back(&mut self, most: f64) {
        if let Some(place) = self.taken.iter().position(|taken| *taken == most) {
            self.taken.swap_remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn stages_that_do_not_fit_together_wait() {
        let free = Cell::new(100.0);
        let mut room = Room::default();
        let take = |room: &mut Room, least, most| room.take(least, most, || Some(free.get()), || ()).unwrap();
        // nothing of it is allocated yet, so that only what is held back tells
        assert!(take(&mut room, 60.0, 60.0) && !take(&mut room, 50.0, 50.0) && take(&mut room, 40.0, 40.0));
        room.give_back(60.0);
        // one that has grown further than was foreseen
        free.set(20.0);
        assert!(!take(&mut room, 30.0, 30.0) && take(&mut room, 20.0, 20.0));
        room.give_back(40.0);
        room.give_back(20.0);
        assert!(take(&mut room, 10.0, 1e9), "alone it need not find the most that it may take");
    }

    #[test]
    fn what_can_be_freed_is_freed_first() {
        let free = Cell::new(10.0);
        let mut room = Room::default();
        let available = || Some(free.get());
        assert!(room.take(50.0, 50.0, available, || free.set(60.0)).unwrap());
        room.give_back(50.0);
        let error = room.take(61.0, 61.0, available, || ()).unwrap_err();
        assert_eq!(error.exit_code(), 8);
        assert!(room.take(1e12, 1e12, || None, || ()).unwrap(), "where the system does not say");
    }
}
