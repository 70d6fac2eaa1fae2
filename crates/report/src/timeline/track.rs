//! Engines and threads: the rows of a chart.

use serde::Serialize;

/// A row of a chart: an engine or a thread. Rows are shown in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(tag = "engine", content = "index", rename_all = "snake_case")]
pub enum Track {
    /// The thread that submits the job.
    Host,
    /// Another thread of the host.
    HostThread(u32),
    /// A lane that copies between ordinary and pinned memory.
    Staging(u32),
    /// A copy engine, host to device.
    HostToDevice(u32),
    /// An engine that runs kernels.
    Compute(u32),
    /// A copy engine, device to host.
    DeviceToHost(u32),
}

impl Track {
    /// Its name, with its number if its kind has numbers: `Host`, `Compute 0`.
    #[must_use]
    pub fn name(self) -> String {
        self.numbered(self.kind_names().0)
    }

    /// Names of sorted tracks, with numbers only where several are of one kind.
    pub(crate) fn names(tracks: &[Self]) -> Vec<TrackName> {
        let name = |track: &Self| {
            let (long, short) = track.kind_names();
            let same_kind = tracks.iter().filter(|other| other.kind_names().0 == long);
            let [long, short] = match same_kind.count() {
                1 => [long, short].map(str::to_owned),
                _ => [long, short].map(|name| track.numbered(name)),
            };
            TrackName { long, short }
        };
        tracks.iter().map(name).collect()
    }

    /// Long and short name of its kind.
    fn kind_names(self) -> (&'static str, &'static str) {
        match self {
            Self::Host => ("Host", "Host"),
            Self::HostThread(_) => ("Host thread", "Thread"),
            Self::Staging(_) => ("Staging", "Stage"),
            Self::HostToDevice(_) => ("Host to device", "H2D"),
            Self::Compute(_) => ("Compute", "Comp"),
            Self::DeviceToHost(_) => ("Device to host", "D2H"),
        }
    }

    fn numbered(self, name: &str) -> String {
        match self {
            Self::Host => name.to_owned(),
            Self::HostThread(index)
            | Self::Staging(index)
            | Self::HostToDevice(index)
            | Self::Compute(index)
            | Self::DeviceToHost(index) => format!("{name} {index}"),
        }
    }
}

/// Labels of a row, for much and for little room.
#[derive(Clone, Debug)]
pub(crate) struct TrackName {
    pub(crate) long: String,
    pub(crate) short: String,
}
