//! A load as text.

use super::{Load, LoadConversion, LoadCopies, LoadLimitedBy, LoadTimes, LoadVerify};
use crate::Origin;
use crate::format::amount;
use crate::timeline::layout::words::{clean, duration, percent};

impl Load {
    /// What was loaded and the origin; a line for each run; what the limit was; memory,
    /// conversions, and whether every byte is right.
    #[must_use]
    pub fn to_text(&self) -> String {
        let job = &self.job;
        let mut text = format!(
            "Weights to the GPU\n{}\n{}",
            clean(&self.origin.line()),
            tensors_of_files(job.tensors, job.files, job.bytes)
        );
        if let Some(shard) = job.shard {
            text.push_str(&format!("; rows of rank {} of {}", shard.rank, shard.world));
        }
        text.push_str("\n\n");
        text.push_str(&match (self.runs.is_empty(), &self.origin) {
            (true, _) => "Nothing was loaded.\n".to_owned(),
            (false, Origin::Simulated { .. }) => self.simulated(),
            (false, _) => self.measured(),
        });
        if let Some(memory) = &self.memory {
            let on_device = format!("{} on the device", amount(memory.device_bytes));
            text.push_str(&match memory.pinned_bytes {
                Some(pinned) => format!("Memory: {on_device}, {} pinned.\n", amount(pinned)),
                None => format!("Memory: {on_device}.\n"),
            });
        }
        if let Some(conversion) = &self.conversion {
            text.push_str(&converted(conversion));
        }
        if let Some(verify) = &self.verify {
            text.push_str(&verified(verify));
        }
        if !self.complete {
            text.push_str("Not all was done.\n");
        }
        text
    }

    fn measured(&self) -> String {
        let names = ["time", "rate", "page cache", "past it"].map(str::to_owned);
        let mut text = row("run", names);
        for (number, run) in self.runs.iter().enumerate() {
            if let Some(times) = &run.times {
                text.push_str(&row(&(number + 1).to_string(), cells(times)));
            }
        }
        if let Some(median) = &self.median_of_later {
            let name = match median.runs {
                1 => "later".to_owned(),
                runs => format!("2 to {}, median", runs + 1),
            };
            let [time, rate] = time_and_rate(median.total_ns, median.gb_per_s);
            text.push_str(&row(&name, [time, rate, String::new(), String::new()]));
        }
        let Some(typical) = self.typical() else {
            return text;
        };
        text.push_str(&format!(
            "From open to all tensors ready: headers {}, memory and loading {}. GB is 10^9 bytes.\n\n",
            duration(typical.headers_ns),
            duration(typical.load_ns)
        ));
        if self.job.bytes > 0 {
            text.push_str(&limit(&typical));
        }
        text
    }

    /// Runs are all alike there.
    fn simulated(&self) -> String {
        let copies = self.runs.first().and_then(|run| run.simulated_copies);
        let mut text = match copies {
            None => "Copies: not seen from here.\n".to_owned(),
            Some(LoadCopies { count: 0, .. }) => {
                "Copies: none, since there are no bytes.\n".to_owned()
            }
            Some(LoadCopies { ns: 0, .. }) => "Copies: take no time on this device.\n".to_owned(),
            Some(LoadCopies { bytes, ns, .. }) => format!(
                "Copies: {} in {} of simulated time, {:.1} GB/s.\n",
                amount(bytes),
                duration(ns),
                bytes as f64 / ns as f64
            ),
        };
        text.push_str(
            "Reading: by threads of this machine, which a simulated clock does not see.\n",
        );
        text
    }
}

/// What kept it from being faster, with the figure that shows it.
fn limit(times: &LoadTimes) -> String {
    let threads = count(times.threads, "thread");
    let whose = if times.threads == 1 { "its" } else { "their" };
    let of_their_time = |ns| format!("for {} of {whose} time", percent(times.share(ns)));
    match times.limit {
        LoadLimitedBy::Link => {
            let waited = of_their_time(times.waiting_ns);
            format!("Limit: the link; {threads} waited for copies to the device {waited}.\n")
        }
        LoadLimitedBy::Disk => {
            let read = of_their_time(times.reading_ns);
            let direct = amount(times.direct_bytes);
            format!("Limit: the disk; {threads} read {read}, {direct} past the page cache.\n")
        }
        LoadLimitedBy::Cpu if times.converting_ns > times.reading_ns => {
            let converted = of_their_time(times.converting_ns);
            format!("Limit: the CPU; {threads} converted {converted}.\n")
        }
        LoadLimitedBy::Cpu => {
            let read = of_their_time(times.reading_ns);
            format!("Limit: the CPU; {threads} copied out of the page cache {read}.\n")
        }
    }
}

fn converted(conversion: &LoadConversion) -> String {
    let LoadConversion {
        to,
        converted,
        already,
        left,
    } = conversion;
    let mut text = format!(
        "Converted to {}: {}",
        clean(to),
        count(*converted, "tensor")
    );
    if *already > 0 {
        text.push_str(&format!("; {already} had this type before"));
    }
    if *left > 0 {
        text.push_str(&format!("; {left} of other types left as they are"));
    }
    text.push_str(".\n");
    text
}

fn verified(verify: &LoadVerify) -> String {
    let tensors = count(verify.tensors, "tensor");
    match &verify.failure {
        None => format!("Verified: {tensors} read back, every byte as in the files.\n"),
        Some(failure) => format!("NOT VERIFIED: {}\n", clean(failure)),
    }
}

fn cells(times: &LoadTimes) -> [String; 4] {
    let [time, rate] = time_and_rate(times.total_ns, times.gb_per_s);
    [
        time,
        rate,
        amount(times.page_cache_bytes),
        amount(times.direct_bytes),
    ]
}

fn time_and_rate(total_ns: u64, gb_per_s: f64) -> [String; 2] {
    [duration(total_ns), format!("{gb_per_s:.1} GB/s")]
}

fn row(name: &str, cells: [String; 4]) -> String {
    let [time, rate, cached, direct] = cells;
    let row = format!("{name:<16}{time:>12}{rate:>14}{cached:>14}{direct:>14}");
    format!("{}\n", row.trim_end())
}

/// `3 tensors of 2 files: 94 B`
pub(super) fn tensors_of_files(tensors: u64, files: u64, bytes: u64) -> String {
    format!(
        "{} of {}: {}",
        count(tensors, "tensor"),
        count(files, "file"),
        amount(bytes)
    )
}

/// `1 file`, `2 files`
pub(super) fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
