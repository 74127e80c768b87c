//! A run: started, stepped, saved; by one rank, or by several that follow the first.

pub(crate) mod command;
pub mod rank_group;
pub mod scatter;
pub mod simulation;
mod trajectory;
