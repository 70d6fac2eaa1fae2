//! Charts to look at: a small one, and one job run in five ways.

use pinlane_report::Origin;
use pinlane_report::timeline::{Chart, Span, SpanKind, Timeline, Track};

const CHUNK_BYTES: u64 = 8 << 20;
const COPY_IN_NS: u64 = 699_000;
const KERNEL_NS: u64 = 610_000;
const COPY_OUT_NS: u64 = 640_000;
const HOST_WORK_NS: u64 = 4_800_000;

pub fn simulated() -> Origin {
    Origin::new("Simulated GPU", Some("pcie3-x16".into()))
}

/// Two runs of a copy, a kernel and a copy back: serial, and in two chunks.
pub fn small() -> Chart {
    let serial = vec![
        Span::new(Track::HostToDevice(0), SpanKind::HostToDevice, 0, 4_000)
            .label("input")
            .stream(0)
            .bytes(48_000),
        Span::new(Track::Compute(0), SpanKind::Kernel, 4_000, 8_000).label("scale"),
        Span::new(
            Track::DeviceToHost(0),
            SpanKind::DeviceToHost,
            8_000,
            12_000,
        )
        .label("output")
        .bytes(48_000),
    ];
    let mut overlapped = vec![Span::new(Track::Host, SpanKind::Wait, 500, 8_000)];
    for chunk in 0..2 {
        let at_ns = chunk * 2_000;
        let steps = [
            (Track::HostToDevice(0), SpanKind::HostToDevice),
            (Track::Compute(0), SpanKind::Kernel),
            (Track::DeviceToHost(0), SpanKind::DeviceToHost),
        ];
        for (step, (track, kind)) in (0..).zip(steps) {
            let start_ns = at_ns + step * 2_000;
            let span = Span::new(track, kind, start_ns, start_ns + 2_000);
            overlapped.push(span.chunk(chunk).stream(chunk as u32).bytes(24_000));
        }
    }
    Chart::new(
        "Copies and a kernel",
        simulated(),
        vec![
            Timeline::new("Serial", 12_000, serial).expect("in order"),
            Timeline::new("Two chunks", 8_000, overlapped).expect("in order"),
        ],
    )
}

/// One job in five ways, as the tool would show it.
pub fn five() -> Chart {
    Chart::new(
        "128 MiB through one kernel, five ways",
        simulated(),
        vec![
            serial(false),
            serial(true),
            streams("4 streams, breadth-first", true),
            streams("4 streams, depth-first", false),
            planned(),
        ],
    )
}

/// Engines that take one piece of work after the other.
#[derive(Default)]
struct Rig {
    spans: Vec<Span>,
    free_ns: [u64; 3],
}

impl Rig {
    /// One step of a chunk, as soon as both the engine and what it needs are ready.
    fn step(&mut self, step: usize, chunk: u64, ready_ns: u64, length_ns: u64) -> u64 {
        let (track, kind, label) = [
            (Track::HostToDevice(0), SpanKind::HostToDevice, "copy in"),
            (Track::Compute(0), SpanKind::Kernel, "saxpy"),
            (Track::DeviceToHost(0), SpanKind::DeviceToHost, "copy out"),
        ][step];
        let start_ns = ready_ns.max(self.free_ns[step]);
        let end_ns = start_ns + length_ns;
        self.free_ns[step] = end_ns;
        self.spans.push(
            Span::new(track, kind, start_ns, end_ns)
                .label(label)
                .chunk(chunk)
                .stream((chunk % 4) as u32)
                .bytes(CHUNK_BYTES),
        );
        end_ns
    }

    fn host(&mut self, kind: SpanKind, label: &str, start_ns: u64, end_ns: u64) {
        let span = Span::new(Track::Host, kind, start_ns, end_ns).label(label);
        self.spans.push(span);
    }

    fn end_ns(&self) -> u64 {
        self.spans.iter().map(|span| span.end_ns).max().unwrap_or(0)
    }

    fn run(self, name: &str) -> Timeline {
        Timeline::new(name, self.end_ns(), self.spans).expect("in order")
    }
}

fn serial(beside: bool) -> Timeline {
    let mut rig = Rig::default();
    let mut ready_ns = 0;
    for (step, length_ns) in [COPY_IN_NS, KERNEL_NS, COPY_OUT_NS].into_iter().enumerate() {
        for chunk in 0..16 {
            ready_ns = rig.step(step, chunk, ready_ns, length_ns);
        }
    }
    if beside {
        rig.host(
            SpanKind::HostWork,
            "CPU work",
            40_000,
            40_000 + HOST_WORK_NS,
        );
        rig.host(
            SpanKind::Wait,
            "synchronise",
            40_000 + HOST_WORK_NS,
            ready_ns,
        );
        rig.run("CPU work beside one stream")
    } else {
        rig.host(SpanKind::Wait, "synchronise", 0, ready_ns);
        rig.host(
            SpanKind::HostWork,
            "CPU work",
            ready_ns,
            ready_ns + HOST_WORK_NS,
        );
        rig.run("Serial")
    }
}

fn streams(name: &str, breadth_first: bool) -> Timeline {
    let mut rig = Rig::default();
    let memset = Span::new(Track::Compute(0), SpanKind::Memset, 0, 90_000).label("clear");
    rig.spans.push(memset);
    // Issued breadth-first, the last step of one round holds up the first step of the next.
    let mut round_ns = 0;
    for round in 0..4 {
        let chunks = round * 4..round * 4 + 4;
        let mut last_ns = 0;
        for chunk in chunks {
            let start_ns = if breadth_first {
                round_ns
            } else {
                12_000 * chunk
            };
            let copied_ns = rig.step(0, chunk, start_ns, COPY_IN_NS);
            let computed_ns = rig.step(1, chunk, copied_ns, KERNEL_NS);
            last_ns = computed_ns;
            rig.step(2, chunk, computed_ns, COPY_OUT_NS);
        }
        round_ns = last_ns;
    }
    rig.host(
        SpanKind::HostWork,
        "CPU work",
        190_000,
        190_000 + HOST_WORK_NS,
    );
    let end_ns = rig.end_ns();
    rig.host(
        SpanKind::Wait,
        "synchronise",
        190_000 + HOST_WORK_NS,
        end_ns,
    );
    rig.run(name)
}

/// Lanes stage what the engine then copies; small kernels overlap.
fn planned() -> Timeline {
    let mut rig = Rig::default();
    let mut lanes_ns = [0; 2];
    for chunk in 0..32u64 {
        let lane = (chunk % 2) as usize;
        let start_ns = lanes_ns[lane];
        lanes_ns[lane] = start_ns + 560_000;
        rig.spans.push(
            Span::new(
                Track::Staging(lane as u32),
                SpanKind::Staging,
                start_ns,
                lanes_ns[lane],
            )
            .label("stage")
            .chunk(chunk)
            .bytes(CHUNK_BYTES / 2),
        );
        let copied_ns = rig.step(0, chunk, lanes_ns[lane], 300_000);
        let kernel = Span::new(
            Track::Compute(0),
            SpanKind::Kernel,
            copied_ns,
            copied_ns + 380_000,
        );
        rig.spans.push(
            kernel
                .label("saxpy")
                .chunk(chunk)
                .stream((chunk % 3) as u32)
                .bytes(CHUNK_BYTES / 2),
        );
        rig.step(2, chunk, copied_ns + 380_000, 280_000);
    }
    rig.host(
        SpanKind::HostWork,
        "CPU work",
        30_000,
        30_000 + HOST_WORK_NS,
    );
    let end_ns = rig.end_ns();
    rig.host(SpanKind::Wait, "synchronise", 30_000 + HOST_WORK_NS, end_ns);
    let fold = Span::new(
        Track::Compute(0),
        SpanKind::DeviceToDevice,
        end_ns - 600_000,
        end_ns - 400_000,
    );
    rig.spans.push(fold.label("gather").bytes(1 << 20));
    rig.run("Planned pipeline: 4 MiB chunks, 3 streams, 2 lanes")
}
