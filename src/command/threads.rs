//! The threads that planning and executing share: started here, so that a system that gives none is an error. And the one
//! that everything else runs on.

use std::{env, panic, thread};

use miette::miette;
use rayon::ThreadPoolBuilder;
use rustix::process::{Resource, getrlimit};

use super::Exit;

/// What systems usually give the main thread.
const STACK: usize = 8 << 20;

/// Runs `work` where it has a stack of the usual size: here, unless the limit (`ulimit -s`) is less than half of that. A
/// YAML text with brackets in brackets takes half a megabyte to read, and the command line a quarter where nothing is
/// optimized.
pub fn with_stack(work: fn() -> Exit) -> Exit {
    if getrlimit(Resource::Stack).current.is_none_or(|limit| limit >= STACK as u64 / 2) {
        return work();
    }
    match thread::Builder::new().stack_size(STACK).spawn(work) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)),
        // It may still do.
        Err(_) => work(),
    }
}

/// More threads than this are in each other's way; rayon takes any number from its environment variable, and a number
/// that the system does not allow keeps it busy for ever.
const MOST: usize = 512;

/// Starts as many threads as there are cores, or as `RAYON_NUM_THREADS` says.
pub(super) fn start() -> miette::Result<()> {
    let asked = env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse::<usize>().ok());
    // None asked for is as many as there are cores.
    let number = asked.filter(|&asked| asked > MOST).map_or(0, |_| MOST);
    ThreadPoolBuilder::new().num_threads(number).build_global().map_err(|error| {
        miette!(
            help = "raise the limit of processes (`ulimit -u`, or the container's), or ask for fewer threads \
                    (`RAYON_NUM_THREADS=1`)",
            "the system gives no threads: {}",
            crate::diagnostic::system::says(&std::io::Error::other(error))
        )
    })
}
