//! Timelines: what ran when on which engine, as data and as pictures.
//!
//! A [`Span`] is one piece of work on one [`Track`], a [`Timeline`] is a run made of spans, and a
//! [`Chart`] shows several runs of one job below each other on a common time scale. An [`Exporter`] is
//! an output format; a new one touches nothing else.
//!
//! ```text
//!  Chart ─┬─ Timeline ─┬─ Span      rows, palette   lanes, shades, colours: shared by all formats
//!         │            └─ …         text/           Gantt chart in the terminal
//!         └─ Timeline …             svg/            a standalone picture
//!                                   html/           an offline page with zoom and tooltips
//!                                   trace           events for Perfetto and chrome://tracing
//!                                   json            the data, with speed-ups and how busy tracks were
//! ```
//!
//! ```
//! use pinlane_report::Origin;
//! use pinlane_report::timeline::{Chart, Exporter, Span, SpanKind, Text, Timeline, Track};
//!
//! let copy = Span::new(Track::HostToDevice(0), SpanKind::HostToDevice, 0, 4_000)
//!     .label("input")
//!     .bytes(48_000);
//! let kernel = Span::new(Track::Compute(0), SpanKind::Kernel, 4_000, 10_000).label("scale");
//! let run = Timeline::new("Serial", 10_000, vec![copy, kernel])?;
//! let origin = Origin::new("Simulated GPU", Some("pcie3-x16".into()));
//! let chart = Chart::new("A copy and a kernel", origin, vec![run]);
//!
//! let mut text = Vec::new();
//! Text::default().export(&chart, &mut text)?;
//! assert!(String::from_utf8(text)?.contains("SIMULATED"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chart;
mod exporter;
mod html;
mod json;
mod palette;
mod rows;
mod run;
mod span;
mod svg;
mod text;
mod trace;

pub use chart::Chart;
pub use exporter::Exporter;
pub use html::Html;
pub use run::{Gap, Timeline, TimelineError};
pub use span::{Span, SpanKind, Track};
pub use svg::Svg;
pub use text::Text;
pub use trace::Trace;

use span::TrackName;

/// Legend of the two shades of a kind.
const SHADES_NOTE: &str = "shades separate chunks";
