//! `pinlane compare`

use pinlane::Device;
use pinlane_report::{Compare, MemoryKind, Origin};

use crate::args;
use crate::device::{self, Choice};
use crate::measure::Bench;
use crate::output::Output;

pub(crate) fn run(
    choice: &Choice,
    args: &args::Compare,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    // The checks look for mistakes of the caller by hashing every buffer in flight. The library
    // rules those out, and hashing costs more than copying.
    let target = device::open(choice, |sim| sim.checks(false).record_timeline(false), None)?;
    let device = Device::open(target.platform(), target.ordinal())?;
    let report = measure(&device, args)?;
    output.print(&if json {
        report.to_json()
    } else {
        report.to_text()
    })?;
    Ok(true)
}

fn measure(device: &Device, args: &args::Compare) -> anyhow::Result<Compare> {
    let info = device.info();
    let mut bench = Bench::new(device, args.size, args.repeat)?;
    let pageable = bench.row(MemoryKind::Pageable)?;
    let pinned = bench.row(MemoryKind::Pinned)?;
    let mut others = Vec::new();
    if info.can_register {
        others.push(bench.row(MemoryKind::Registered)?);
    }
    Ok(Compare::new(
        Origin::new(&info.name, info.simulated.clone()),
        args.size as u64,
        args.repeat,
        pageable,
        pinned,
        others,
    ))
}
