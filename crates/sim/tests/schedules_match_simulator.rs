//! The simulated GPU and the model's schedules agree: a program has the same timeline on both, to the
//! nanosecond.

mod common;

use common::{Rig, rig};
use pinlane_driver::{
    CopyOp, DevicePtr, EventHandle, FunctionHandle, HostPtr, KernelArg, LaunchShape, ParamKind,
    Place, StreamHandle,
};
use pinlane_kernels::PTX;
use pinlane_model::engine_rules::Engine;
use pinlane_model::schedule::{Action, Program, Work, schedule};
use pinlane_model::{Direction, HostKind, Profile, SplitMix64};
use pinlane_sim::{Kernel, Sim};

const BYTES: u64 = 1 << 18;

/// A size: often small, sometimes 0, and often one of few values, so that ends coincide.
fn random_size(random: &mut SplitMix64, most: u64) -> u64 {
    match random.below(8) {
        0 => 0,
        1..4 => 4096 << random.below(4),
        4 => random.below(5_000),
        _ => random.below(most),
    }
}

/// A random program of one thread that waits for recorded events only.
fn random_program(random: &mut SplitMix64) -> Program {
    let (streams, events) = (1 + random.below(5) as u32, 1 + random.below(4) as u32);
    let mut program = Program::new(streams, events, 0);
    let thread = program.thread();
    let mut recorded = Vec::new();
    for tag in 0..5 + random.below(120) as u32 {
        let stream = random.below(streams.into()) as u32;
        let event = random.below(events.into()) as u32;
        let known = (!recorded.is_empty()).then(|| *random.pick(&recorded));
        let action = match (random.below(24), known) {
            (0..12, _) => Action::Submit {
                stream,
                work: random_work(random),
            },
            (12..15, _) => {
                recorded.push(event);
                Action::Record { stream, event }
            }
            (15..19, Some(event)) => Action::Wait { stream, event },
            (19, Some(event)) => Action::AwaitEvent(event),
            (20, _) => Action::AwaitStream(stream),
            _ => Action::HostWork {
                ns: random_size(random, 20_000),
            },
        };
        program.tagged(thread, action, tag);
    }
    program
}

fn random_work(random: &mut SplitMix64) -> Work {
    let direction = if random.below(2) == 0 {
        Direction::HostToDevice
    } else {
        Direction::DeviceToHost
    };
    let kind = if random.below(6) == 0 {
        HostKind::Pageable
    } else {
        HostKind::Pinned
    };
    match random.below(8) {
        0 => Work::Fill {
            bytes: random_size(random, BYTES),
        },
        1 | 2 => Work::Kernel {
            tail_ns: random.below(2) * random_size(random, 60_000),
            ns: random_size(random, 30_000),
        },
        _ => Work::Copy {
            direction,
            kind,
            bytes: random_size(random, BYTES),
        },
    }
}

/// Built-in profiles, and variants with more, fewer and slower engines.
fn profiles() -> Vec<Profile> {
    let changed =
        |name: &str, h2d: u32, d2h: u32, percent: u64, [handover_ns, switch_ns]: [u64; 2]| {
            let mut profile = common::profile(name);
            profile.device.async_engines = h2d + d2h;
            profile.device.h2d_engines = h2d;
            profile.device.d2h_engines = d2h;
            profile.both_ways_percent = percent;
            profile.device.handover_ns = handover_ns;
            profile.device.switch_ns = switch_ns;
            profile
        };
    let mut profiles: Vec<_> = Profile::builtin_names().map(common::profile).collect();
    profiles.push(changed("h200", 2, 3, 137, [2_500, 700]));
    profiles.push(changed("h200", 1, 0, 150, [900, 5_000]));
    profiles.push(changed("pcie4-x16", 3, 1, 201, [0; 2]));
    profiles.push(changed("null", 1, 1, 170, [4_096, 123]));
    profiles
}

/// In place of the built-in kernel, one that leaves the device to others at its end: (tail, duration).
fn spin_with_tail() -> Kernel {
    fn number(arg: &KernelArg) -> u64 {
        match arg {
            KernelArg::U64(number) => *number,
            other => unreachable!("{other:?}"),
        }
    }
    Kernel {
        name: "pinlane_spin",
        params: &[ParamKind::U64, ParamKind::U64],
        run: |_, _, _| Ok(()),
        bytes_touched: |_| 0,
        fixed_ns: |args| number(&args[1]),
        tail_ns: |args| number(&args[0]),
    }
}

/// Runs a program on the simulated GPU.
struct Runner {
    rig: Rig,
    streams: Vec<StreamHandle>,
    events: Vec<EventHandle>,
    pinned: HostPtr,
    pageable: Vec<u8>,
    device: DevicePtr,
    kernel: FunctionHandle,
}

impl Runner {
    fn new(profile: &Profile, program: &Program) -> Self {
        let builder = Sim::builder().profile(profile.clone()).checks(false);
        let rig = rig(builder.kernel(spin_with_tail()));
        let module = rig.driver.module_load(PTX).unwrap();
        Self {
            streams: (0..program.streams)
                .map(|_| rig.non_blocking_stream())
                .collect(),
            events: (0..program.events).map(|_| rig.event()).collect(),
            pinned: rig.pinned(BYTES as usize),
            pageable: vec![0; BYTES as usize],
            device: rig.device(BYTES as usize),
            kernel: rig.driver.module_function(module, "pinlane_spin").unwrap(),
            rig,
        }
    }

    fn run(&mut self, action: Action) {
        let driver = &self.rig.driver;
        let stream = |stream: u32| self.streams[stream as usize];
        let event = |event: u32| self.events[event as usize];
        match action {
            Action::Submit { stream, work } => self.submit(stream, work),
            Action::Record {
                stream: on,
                event: it,
            } => {
                driver.event_record(event(it), stream(on)).unwrap();
            }
            Action::Wait {
                stream: on,
                event: it,
            } => {
                driver.stream_wait_event(stream(on), event(it)).unwrap();
            }
            Action::AwaitEvent(it) => driver.event_synchronize(event(it)).unwrap(),
            Action::AwaitStream(on) => driver.stream_synchronize(stream(on)).unwrap(),
            Action::HostWork { ns } => self.rig.sim.host_work(ns),
            Action::ExpressCopy { .. } | Action::Signal(_) | Action::AwaitSignal(_) => {
                unreachable!("one thread only, and no lanes")
            }
        }
    }

    fn submit(&mut self, stream: u32, work: Work) {
        let driver = &self.rig.driver;
        let stream = self.streams[stream as usize];
        match work {
            Work::Copy {
                direction,
                kind,
                bytes,
            } => {
                let host = Place::Host(match kind {
                    HostKind::Pinned => self.pinned,
                    HostKind::Pageable => HostPtr::new(self.pageable.as_mut_ptr()).unwrap(),
                });
                let device = Place::Device(self.device);
                let (source, target) = match direction {
                    Direction::HostToDevice => (host, device),
                    Direction::DeviceToHost => (device, host),
                };
                let copy = CopyOp {
                    target,
                    source,
                    bytes: bytes as usize,
                };
                // SAFETY: all three buffers are that large and live as long as the runner. Their
                // content does not matter.
                unsafe { driver.copy_async(copy, stream).unwrap() };
            }
            Work::Kernel { tail_ns, ns } => {
                let args = [KernelArg::U64(tail_ns), KernelArg::U64(ns)];
                let shape = LaunchShape::for_items(1);
                // SAFETY: the arguments match the kernel, which accesses no memory.
                unsafe { driver.launch(self.kernel, shape, &args, stream).unwrap() };
            }
            // SAFETY: the buffer is that large.
            Work::Fill { bytes } => unsafe {
                driver
                    .memset_async(self.device, 0, bytes as usize, stream)
                    .unwrap();
            },
        }
    }
}

type Row = (Engine, u64, u64);

/// The timeline on the simulated GPU: spans in order of submission, and the host's end.
fn on_the_simulator(profile: &Profile, program: &Program) -> (Vec<Row>, u64) {
    let mut runner = Runner::new(profile, program);
    let zero_ns = runner.rig.sim.now_ns();
    for step in &program.threads[0] {
        runner.run(step.action);
    }
    let host_ns = runner.rig.sim.now_ns() - zero_ns;
    while runner.rig.sim.step() {}
    let mut spans = runner.rig.sim.timeline();
    spans.sort_by_key(|span| span.sequence);
    let rows = spans
        .iter()
        .map(|span| (span.engine, span.start_ns - zero_ns, span.end_ns - zero_ns));
    (rows.collect(), host_ns)
}

/// The same by the model.
fn in_the_model(profile: &Profile, program: &Program) -> (Vec<Row>, u64) {
    let mut schedule = schedule(profile, program).unwrap();
    schedule.spans.sort_by_key(|span| span.sequence);
    let rows = schedule.spans.iter();
    let rows = rows.map(|span| (span.engine, span.start_ns, span.end_ns));
    (rows.collect(), schedule.thread_ends_ns[0])
}

#[test]
fn schedules_match_the_simulator() {
    for seed in common::seeds(300) {
        let program = random_program(&mut SplitMix64::new(seed));
        for (index, profile) in profiles().iter().enumerate() {
            let (expected, expected_ns) = on_the_simulator(profile, &program);
            let (found, found_ns) = in_the_model(profile, &program);
            let place = format!("seed {seed}, profile {index} ({})", profile.name);
            for (at, pair) in found.iter().zip(&expected).enumerate() {
                assert_eq!(pair.0, pair.1, "{place}, operation {at}");
            }
            assert_eq!(found.len(), expected.len(), "{place}");
            assert_eq!(found_ns, expected_ns, "{place}, the host's end");
        }
    }
}

#[test]
fn the_random_programs_cover_every_rule() {
    let (mut slowed, mut handed_over, mut queued) = (0, 0, 0);
    let mut plain = common::profile("h200");
    plain.both_ways_percent = 100;
    let mut direct = common::profile("h200");
    direct.device.handover_ns = 0;
    let mut wide = common::profile("h200");
    wide.device.h2d_engines = 64;
    for seed in common::seeds(300) {
        let program = random_program(&mut SplitMix64::new(seed));
        let rows = in_the_model(&common::profile("h200"), &program);
        slowed += usize::from(rows != in_the_model(&plain, &program));
        handed_over += usize::from(rows != in_the_model(&direct, &program));
        queued += usize::from(rows.0 != in_the_model(&wide, &program).0);
    }
    let few = if cfg!(miri) { 0 } else { 100 };
    for count in [slowed, handed_over, queued] {
        assert!(count >= few, "{slowed} {handed_over} {queued}");
    }
}
