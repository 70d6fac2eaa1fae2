//! Random charts from a seed.

use pinlane_model::SplitMix64;
use pinlane_report::Origin;
use pinlane_report::timeline::{Chart, Span, SpanKind, Timeline, Track};

/// Labels that break careless formats.
const LABELS: [&str; 14] = [
    "",
    "saxpy",
    "</script><script>alert(1)</script>",
    "<!-- ]]> & <b>bold</b> -->",
    "\"quoted\" 'and' \\slashed\\",
    "tab\tline\nreturn\r null\0 escape\u{1b}[31m bell\u{7}",
    "naïve Größe µs → ∞",
    "漢字かな交じり文",
    "👩‍💻 emoji 🚀",
    "\u{202e}backwards\u{2066} \u{200b}\u{feff}",
    "\u{2028}line\u{2029}paragraph",
    "\u{fffe}\u{ffff}\u{10ffff}\u{e001}",
    "{{data}} {0} %s ${x} `tick`",
    "a label that is much longer than any bar, any row and any terminal that it will ever be shown in, \
     so that everything that shows it has to cut it off somewhere",
];

/// A generator of numbers.
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// From 0 to `most`, both included.
    pub fn up_to(&mut self, most: u64) -> u64 {
        match most.checked_add(1) {
            None => self.0.next_u64(),
            Some(count) => self.0.below(count),
        }
    }

    fn chance(&mut self, of: u64) -> bool {
        self.up_to(of - 1) == 0
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        let last = list.len() as u64 - 1;
        list[self.up_to(last) as usize]
    }
}

pub fn label(random: &mut Random) -> String {
    random.one_of(&LABELS).to_owned()
}

/// Any chart at all.
pub fn chart(random: &mut Random) -> Chart {
    let profile = if random.chance(2) {
        Some(label(random))
    } else {
        None
    };
    let origin = Origin::new(label(random), profile);
    let count = random.up_to(4);
    let timelines = (0..count).map(|_| timeline(random)).collect();
    Chart::new(label(random), origin, timelines)
}

fn timeline(random: &mut Random) -> Timeline {
    let total_ns = random.one_of(&[
        0,
        1,
        7,
        999,
        12_345_678,
        u64::MAX / 3,
        u64::MAX - 1,
        u64::MAX,
    ]);
    let count = random.one_of(&[0, 1, 5, 40]);
    let spans = (0..count).map(|_| span(random, total_ns)).collect();
    Timeline::new(label(random), total_ns, spans).expect("within the run")
}

fn span(random: &mut Random, total_ns: u64) -> Span {
    let start_ns = random.up_to(total_ns);
    let left_ns = total_ns - start_ns;
    let length_ns = match random.up_to(3) {
        0 => 0,
        1 => left_ns,
        2 => left_ns.min(random.up_to(20)),
        _ => random.up_to(left_ns),
    };
    let index = random.one_of(&[0, 0, 1, 2, u32::MAX]);
    let track = match random.up_to(5) {
        0 => Track::Host,
        1 => Track::HostThread(index),
        2 => Track::Staging(index),
        3 => Track::HostToDevice(index),
        4 => Track::Compute(index),
        _ => Track::DeviceToHost(index),
    };
    let kind = random.one_of(&SpanKind::ALL);
    let mut span = Span::new(track, kind, start_ns, start_ns + length_ns).label(label(random));
    if random.chance(2) {
        span = span.chunk(random.one_of(&[0, 1, 2, 3, 17, u64::MAX]));
    }
    if random.chance(2) {
        span = span.stream(random.one_of(&[0, 1, u32::MAX]));
    }
    span.bytes(random.one_of(&[0, 1, 4096, 1 << 26, u64::MAX]))
}
