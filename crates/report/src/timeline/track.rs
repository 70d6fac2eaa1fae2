//! Rows of a chart.

use serde::Serialize;

/// A row of a chart: one thing that works on its own. Rows are shown in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(tag = "engine", content = "index", rename_all = "snake_case")]
pub enum Track {
    /// The thread that drives the job.
    Host,
    /// A further thread of the host.
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
    /// Its name, with its number where its sort has numbers: `Host`, `Compute 0`.
    #[must_use]
    pub fn name(self) -> String {
        self.numbered(self.sort_name())
    }

    /// Names for a list of tracks that is sorted: numbers only where several are of one sort.
    pub(crate) fn names(tracks: &[Self]) -> Vec<TrackName> {
        let alone = |track: &Self| {
            tracks
                .iter()
                .filter(|other| other.sort_name() == track.sort_name())
                .count()
                == 1
        };
        tracks
            .iter()
            .map(|track| {
                let (long, short) = (track.sort_name(), track.short_name());
                if alone(track) {
                    TrackName {
                        long: long.to_owned(),
                        short: short.to_owned(),
                    }
                } else {
                    TrackName {
                        long: track.numbered(long),
                        short: track.numbered(short),
                    }
                }
            })
            .collect()
    }

    fn sort_name(self) -> &'static str {
        match self {
            Self::Host => "Host",
            Self::HostThread(_) => "Host thread",
            Self::Staging(_) => "Staging",
            Self::HostToDevice(_) => "Host to device",
            Self::Compute(_) => "Compute",
            Self::DeviceToHost(_) => "Device to host",
        }
    }

    fn short_name(self) -> &'static str {
        match self {
            Self::Host => "Host",
            Self::HostThread(_) => "Thread",
            Self::Staging(_) => "Stage",
            Self::HostToDevice(_) => "H2D",
            Self::Compute(_) => "Comp",
            Self::DeviceToHost(_) => "D2H",
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

/// How a row is labelled, where there is room and where there is little.
#[derive(Clone, Debug)]
pub(crate) struct TrackName {
    pub(crate) long: String,
    pub(crate) short: String,
}
