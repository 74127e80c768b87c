//! Checks the communicator of MPI: `mpiexec -n RANKS mpi_check`. Fails, and ends all ranks, where an operation gives
//! anything but what it promises. `scripts/test-mpi` runs it, and with an argument: `panic`, `abort` or `panic-meanwhile`
//! is what the last rank then does while the others wait for it.

use comove_sim::parallel::Communicator;

#[path = "../src/parallel/checks.rs"]
mod checks;

fn main() -> Result<(), comove_sim::SimError> {
    let ranks = Communicator::world()?;
    let last = ranks.rank() == ranks.size() - 1;
    match std::env::args().nth(1).as_deref() {
        None => checks::all(&ranks),
        Some("long") => checks::message_of(&ranks, (1 << 31) + 5),
        Some("panic") if last => panic!("a bug"),
        Some("panic-meanwhile") if last => {
            ranks.communicate::<()>(0, &[(0, &vec![1; 1 << 25])], &mut [(0, &mut [0])], || panic!("a bug"));
        }
        Some("abort") if last => ranks.abort(7),
        Some("panic" | "panic-meanwhile" | "abort") => ranks.sum(&mut [1]),
        Some(other) => panic!("no check is called {other}"),
    }
    if ranks.rank() == 0 {
        println!("{} ranks of MPI: checked", ranks.size());
    }
    Ok(())
}
