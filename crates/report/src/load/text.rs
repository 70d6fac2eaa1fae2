//! A load as text.

use super::{Load, LoadConversion, LoadCopies, LoadHost, LoadLimitedBy, LoadTimes, LoadVerify};
use crate::Origin;
use crate::format::{amount, byte_rate};
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
        text.push_str(&match (self.runs.len() as u64, job.repeat) {
            (runs, asked) if runs < asked && asked > 1 => {
                format!("; loaded {runs} of {asked} times")
            }
            (0 | 1, _) => String::new(),
            (runs, _) => format!("; loaded {runs} times"),
        });
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
        match &self.verify {
            Some(verify) => text.push_str(&self.verified(verify)),
            None if job.verify => text.push_str("Not verified: interrupted.\n"),
            None => {}
        }
        if (self.runs.len() as u64) < job.repeat {
            let runs = self.runs.len();
            text.push_str(&format!(
                "INTERRUPTED: {runs} of {} done.\n",
                count(job.repeat, "run")
            ));
        }
        text
    }

    fn verified(&self, verify: &LoadVerify) -> String {
        if let Some(failure) = &verify.failure {
            return format!("NOT VERIFIED: {}\n", clean(failure));
        }
        let (done, all) = (verify.tensors, self.job.tensors);
        let (tensors, end) = match done < all {
            true => (
                format!("{done} of {}", count(all, "tensor")),
                "; then INTERRUPTED",
            ),
            false => (count(done, "tensor"), ""),
        };
        let mut conversions = self.conversion.iter();
        let Some(LoadConversion { to, .. }) = conversions.find(|it| it.converted > 0) else {
            return format!("Verified: {tensors} read back, every byte as in the files{end}.\n");
        };
        let to = clean(to);
        format!(
            "Verified: {tensors} read back, every byte as the files' numbers, converted again to {to} where \
             they were{end}.\n"
        )
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
            "From open to all tensors ready: headers {}, {}memory and loading {}. GB is 10^9 bytes.\n",
            duration(typical.headers_ns),
            match typical.context_ns {
                0 => String::new(),
                ns => format!("context on the device {}, ", duration(ns)),
            },
            duration(typical.load_ns)
        ));
        if typical.context_ns > 0 {
            let without_ns = typical.total_ns - typical.context_ns;
            let rate = byte_rate(self.job.bytes as f64 / without_ns.max(1) as f64);
            text.push_str(&format!(
                "Without the context, which a process makes once: {rate}.\n"
            ));
        }
        text.push('\n');
        if self.job.bytes > 0 {
            text.push_str(&limit(&typical));
        }
        text
    }

    /// The copies of each run by the simulated clock, and what was real of the last one.
    fn simulated(&self) -> String {
        let names = ["time", "rate", "copied", "copies"].map(str::to_owned);
        let mut text = row("run", names);
        for (number, run) in self.runs.iter().enumerate() {
            let cells = run.simulated_copies.map_or(
                ["not seen", "", "", ""].map(str::to_owned),
                |LoadCopies { count, bytes, ns }| {
                    let rate = (ns > 0).then(|| byte_rate(bytes as f64 / ns as f64));
                    [
                        duration(ns),
                        rate.unwrap_or_else(|| "–".to_owned()),
                        amount(bytes),
                        count.to_string(),
                    ]
                },
            );
            text.push_str(&row(&(number + 1).to_string(), cells));
        }
        text.push_str(
            "SIMULATED time of the copies alone; reading files takes none of it, so that no limit is told. GB is \
             10^9 bytes.\n\n",
        );
        if let Some(host) = self.runs.last().and_then(|run| run.host) {
            text.push_str(&host.line());
        }
        text
    }
}

impl LoadHost {
    /// What is real, in one line.
    fn line(&self) -> String {
        let mut line = format!(
            "Host: real time of this machine: headers {}, reading {} by {}",
            duration(self.headers_ns),
            duration(self.reading_ns),
            count(self.threads, "thread"),
        );
        if self.converting_ns > 0 {
            line.push_str(&format!(", converting {}", duration(self.converting_ns)));
        }
        let (cached, direct) = (amount(self.page_cache_bytes), amount(self.direct_bytes));
        line.push_str(&format!(
            "; {cached} through the page cache, {direct} past it.\n"
        ));
        line
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
            let waited = of_their_time(times.blocked_ns);
            let direct = amount(times.direct_bytes);
            format!(
                "Limit: the disk; {threads} waited for it {waited}; {direct} past the page cache.\n"
            )
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
    [duration(total_ns), byte_rate(gb_per_s)]
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
