//! Records what the streams of a program do, measured or simulated, and draws it.
//!
//! ```
//! # fn main() -> pinlane::Result<()> {
//! use pinlane::Device;
//! use pinlane::record::Recorder;
//!
//! let (device, recorder) = Recorder::new(&Device::sim("h200")?); // instead of Device::sim("h200")?
//! let stream = device.stream()?;
//! let mut on_device = device.alloc::<f32>(1 << 20)?;
//! let there = stream.upload(device.pinned::<f32>(1 << 20)?, &mut on_device)?;
//! stream.download(&on_device, there.wait()?)?.wait()?;
//!
//! let recording = recorder.finish("There and back")?;
//! println!("{recording}"); // the chronogram; recording.save("back.svg") draws it
//! # assert_eq!(recording.timeline().spans().len(), 2);
//! # assert!(recording.to_string().contains("SIMULATED"));
//! # Ok(())
//! # }
//! ```
//!
//! The recorder puts timing events around all work that goes onto a stream: copies, kernels, memsets. That costs
//! a few microseconds per operation, on the host and on the device.

mod hook;

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use pinlane_core::{Device, DeviceInfo, Result};
use pinlane_driver::Intercepted;
use pinlane_report::Origin;
use pinlane_report::timeline::{Chart, Exporter, Html, Span, Svg, Text, Timeline, Trace};

use hook::EventHook;

/// Records the work of one device. See the [crate's documentation](crate).
#[derive(Debug)]
pub struct Recorder {
    device: Device,
    hook: Arc<EventHook>,
}

impl Recorder {
    /// Returns a device like this one, whose streams are recorded. Work of the original is not.
    #[must_use]
    pub fn new(device: &Device) -> (Device, Self) {
        // SAFETY: the hook only creates events, and destroys them before it drops the driver. The new device
        // has the budget of the original.
        let driver = unsafe { pinlane_core::raw::driver(device) };
        let hook = Arc::new(EventHook::new(driver));
        let driver = Intercepted::new(Arc::clone(driver), Arc::clone(&hook));
        let device = Device::with_budget(Arc::new(driver), device.budget());
        let recorder = Self {
            device: device.clone(),
            hook,
        };
        (device, recorder)
    }

    /// Stops recording, until [`resume`](Self::resume). Work then costs next to nothing more than without a recorder.
    pub fn pause(&self) {
        self.hook.set_paused(true);
    }

    /// Records again what is submitted from now on.
    pub fn resume(&self) {
        self.hook.set_paused(false);
    }

    /// Waits for the device and returns what ran since the recorder was created or last finished.
    ///
    /// # Errors
    /// If the device failed, or if an event could not be recorded.
    pub fn finish(&self, title: &str) -> Result<Recording> {
        self.device.synchronize()?;
        Ok(Recording::new(
            title,
            self.device.info(),
            self.hook.spans()?,
        ))
    }
}

/// What ran when. `Display` draws it for a terminal.
#[derive(Clone, Debug)]
pub struct Recording {
    chart: Chart,
}

impl Recording {
    fn new(title: &str, device: &DeviceInfo, spans: Vec<Span>) -> Self {
        let total_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
        let timeline = Timeline::new(title, total_ns, spans).expect("spans end after they start");
        let origin = Origin::new(device.name.clone(), device.simulated.clone());
        Self {
            chart: Chart::new(title, origin, vec![timeline]),
        }
    }

    /// The spans of all work, with their engine, stream, label, bytes and times.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.chart.timelines[0]
    }

    /// The picture that `.svg` files hold.
    #[must_use]
    pub fn svg(&self) -> String {
        text_of(&Svg, &self.chart)
    }

    /// Writes it to a file in the format of its extension: `.svg` for a picture, `.html` for a page to zoom,
    /// `.json` for a trace that Perfetto opens, `.txt` for what `Display` shows.
    ///
    /// # Errors
    /// If the extension is none of these, or the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let exporter: &dyn Exporter = match path.extension().and_then(|name| name.to_str()) {
            Some("svg") => &Svg,
            Some("html") => &Html::default(),
            Some("json") => &Trace,
            Some("txt") => &Text::default(),
            _ => {
                let text = format!("{path:?} must end in .svg, .html, .json or .txt");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        };
        let mut file = BufWriter::new(File::create(path)?);
        exporter.export(&self.chart, &mut file)?;
        file.flush()
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text_of(&Text::default(), &self.chart))
    }
}

fn text_of(exporter: &dyn Exporter, chart: &Chart) -> String {
    let mut text = Vec::new();
    let exported = exporter.export(chart, &mut text);
    exported.expect("memory takes everything");
    String::from_utf8_lossy(&text).into_owned()
}
