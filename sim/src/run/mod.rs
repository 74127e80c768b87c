//! A run: started, stepped, saved; by one rank, or by several that follow the first.

mod attempts;
pub(crate) mod command;
pub(crate) mod rank_group;
mod restart;
mod scatter;
pub(crate) mod simulation;
mod start_scalars;
mod trajectory;
