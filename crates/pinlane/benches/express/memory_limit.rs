//! Asking for more than the machine has: to be run in a cgroup with little memory.

use pinlane::{Error, Result};

use crate::support::{Bench, GIB, MIB};

pub fn run(bench: &Bench) -> Result<()> {
    match bench.device.pinned::<u8>(2 * GIB) {
        Err(error @ Error::OverBudget { .. }) => println!("2 GiB of pinned memory: {error}"),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("it was given; run this in a cgroup with memory.max of 512 MiB"),
    }
    let small = bench.device.pinned_from(&vec![5u8; 16 * MIB])?;
    let mut on_device = bench.device.alloc::<u8>(small.len())?;
    let small = bench
        .stream
        .upload(small, &mut on_device)
        .map_err(Error::from)?;
    let small = small.wait().map_err(Error::from)?;
    assert!(bench.stream.copy_to_vec(&on_device)? == small[..]);
    println!("the process goes on: 16 MiB pinned, uploaded and downloaded");
    Ok(())
}
