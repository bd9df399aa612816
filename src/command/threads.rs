//! The thread pool that planning and executing share, started here so that a system that refuses threads is an error; and
//! the stack that everything else runs on.

use std::{env, io, panic, thread};

use rayon::ThreadPoolBuilder;
use rustix::process::{Resource, getrlimit};

use super::exit::Exit;
use super::failure::Failure;

/// The usual stack of a main thread, in bytes.
const STACK: usize = 8 << 20;

/// Runs `work` on a stack of the usual size: on this thread, unless its limit (`ulimit -s`) is less than half of that.
/// Parsing deeply nested YAML takes half a megabyte, and parsing the command line a quarter in a debug build.
pub(super) fn with_stack(work: fn() -> Exit) -> Exit {
    if getrlimit(Resource::Stack).current.is_none_or(|limit| limit >= STACK as u64 / 2) {
        return work();
    }
    match thread::Builder::new().stack_size(STACK).spawn(work) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)),
        // The small stack may still be enough.
        Err(_) => work(),
    }
}

/// The maximum number of threads. More slow each other down; rayon takes any number from its environment variable, and
/// tries forever to start threads that the system does not allow.
const MAX_THREADS: usize = 512;

/// Starts one thread per core, or as many as `RAYON_NUM_THREADS` says.
pub(super) fn start() -> Result<(), Failure> {
    let asked = env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse::<usize>().ok());
    // 0 leaves the number to rayon.
    let number = asked.filter(|&asked| asked > MAX_THREADS).map_or(0, |_| MAX_THREADS);
    ThreadPoolBuilder::new().num_threads(number).build_global().map_err(|error| {
        Failure::io("cannot start threads", &io::Error::other(error)).help(
            "raise the limit of processes (`ulimit -u`, or the container's) or use fewer threads \
             (`RAYON_NUM_THREADS=1`)",
        )
    })
}
