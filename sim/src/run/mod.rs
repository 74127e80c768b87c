//! A run: started, stepped, saved; by one rank, or by several that follow the first.

mod attempts;
pub(crate) mod command;
pub mod rank_group;
mod restart;
pub mod scatter;
pub mod simulation;
mod trajectory;
