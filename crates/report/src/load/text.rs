//! A load as text.

use super::{Load, LoadConversion, LoadCopies, LoadHost, LoadLimitedBy, LoadTimes, LoadVerify};
use crate::Origin;
use crate::format::{byte_rate, counted, duration, percent, sanitize, short_size, table_row};

const WIDTHS: [usize; 5] = [16, 12, 14, 14, 14];

impl Load {
    /// What was loaded, the origin, a line per run, the limit, memory, conversion and verification.
    #[must_use]
    pub fn to_text(&self) -> String {
        let job = &self.job;
        let mut text = format!(
            "Weights to the GPU\n{}\n{}",
            sanitize(&self.origin.line()),
            tensors_in_files(job.tensors, job.files, job.bytes)
        );
        if let Some(shard) = job.shard {
            text.push_str(&format!("; rows of rank {} of {}", shard.rank, shard.world));
        }
        text.push_str(&match (self.runs.len() as u64, job.repeat) {
            (runs, target) if runs < target && target > 1 => {
                format!("; loaded {runs} of {target} times")
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
            let on_device = format!("{} on the device", short_size(memory.device_bytes));
            text.push_str(&match memory.pinned_bytes {
                Some(pinned) => format!("Memory: {on_device}, {} pinned.\n", short_size(pinned)),
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
            let (runs, target) = (self.runs.len(), counted(job.repeat, "run"));
            text.push_str(&format!("INTERRUPTED: {runs} of {target} done.\n"));
        }
        text
    }

    fn verified(&self, verify: &LoadVerify) -> String {
        if let Some(failure) = &verify.failure {
            return format!("NOT VERIFIED: {}\n", sanitize(failure));
        }
        let (done, all) = (verify.tensors, self.job.tensors);
        let (tensors, end) = match done < all {
            true => (
                format!("{done} of {}", counted(all, "tensor")),
                "; then INTERRUPTED",
            ),
            false => (counted(done, "tensor"), ""),
        };
        let mut conversions = self.conversion.iter();
        let Some(LoadConversion { to, .. }) = conversions.find(|it| it.converted > 0) else {
            return format!("Verified: {tensors} read back, all bytes match the files{end}.\n");
        };
        let to = sanitize(to);
        format!(
            "Verified: {tensors} read back, all bytes match the files after conversion to {to}{end}.\n"
        )
    }

    fn measured(&self) -> String {
        let names = ["run", "time", "rate", "page cache", "direct"];
        let mut text = table_row(&WIDTHS, &names);
        for (number, run) in self.runs.iter().enumerate() {
            if let Some(times) = &run.times {
                let cells = [
                    (number + 1).to_string(),
                    duration(times.total_ns),
                    byte_rate(times.gb_per_s),
                    short_size(times.page_cache_bytes),
                    short_size(times.direct_bytes),
                ];
                text.push_str(&table_row(&WIDTHS, &cells));
            }
        }
        if let Some(median) = &self.median_of_later {
            let name = match median.runs {
                1 => "later".to_owned(),
                runs => format!("2 to {}, median", runs + 1),
            };
            let cells = [name, duration(median.total_ns), byte_rate(median.gb_per_s)];
            text.push_str(&table_row(&WIDTHS, &cells));
        }
        let Some(typical) = self.typical() else {
            return text;
        };
        text.push_str(&format!(
            "From open until all tensors are ready: headers {}, {}allocation and loading {}. GB is 10^9 bytes.\n",
            duration(typical.headers_ns),
            match typical.context_ns {
                0 => String::new(),
                ns => format!("context creation {}, ", duration(ns)),
            },
            duration(typical.load_ns)
        ));
        if typical.context_ns > 0 {
            let without_ns = typical.total_ns - typical.context_ns;
            let rate = byte_rate(self.job.bytes as f64 / without_ns.max(1) as f64);
            text.push_str(&format!("Excluding one-time context creation: {rate}.\n"));
        }
        text.push('\n');
        if self.job.bytes > 0 {
            text.push_str(&limit(&typical));
        }
        text
    }

    /// The copies of each run by the simulated clock, and the real work of the last run.
    fn simulated(&self) -> String {
        let names = ["run", "time", "rate", "copied", "copies"];
        let mut text = table_row(&WIDTHS, &names);
        for (number, run) in self.runs.iter().enumerate() {
            let mut cells = vec![(number + 1).to_string()];
            match run.simulated_copies {
                None => cells.push("not measured".to_owned()),
                Some(LoadCopies { count, bytes, ns }) => {
                    let rate = (ns > 0).then(|| byte_rate(bytes as f64 / ns as f64));
                    cells.extend([
                        duration(ns),
                        rate.unwrap_or_else(|| "–".to_owned()),
                        short_size(bytes),
                        count.to_string(),
                    ]);
                }
            }
            text.push_str(&table_row(&WIDTHS, &cells));
        }
        text.push_str(
            "SIMULATED time of the copies only; reading files takes no simulated time, so no limit is reported. \
             GB is 10^9 bytes.\n\n",
        );
        if let Some(host) = self.runs.last().and_then(|run| run.host) {
            text.push_str(&host.line());
        }
        text
    }
}

impl LoadHost {
    fn line(&self) -> String {
        let mut line = format!(
            "Host, real time: headers {}, reading {} by {}",
            duration(self.headers_ns),
            duration(self.reading_ns),
            counted(self.threads, "thread"),
        );
        if self.converting_ns > 0 {
            line.push_str(&format!(", converting {}", duration(self.converting_ns)));
        }
        let (cached, direct) = (
            short_size(self.page_cache_bytes),
            short_size(self.direct_bytes),
        );
        line.push_str(&format!(
            "; {cached} through the page cache, {direct} direct.\n"
        ));
        line
    }
}

/// What limited the load, with the figure that shows it.
fn limit(times: &LoadTimes) -> String {
    let (limit, activity, ns) = match times.limit {
        LoadLimitedBy::Link => ("link", "waited for copies to the device", times.waiting_ns),
        LoadLimitedBy::Disk => ("disk", "waited for it", times.blocked_ns),
        LoadLimitedBy::Cpu if times.converting_ns > times.reading_ns => {
            ("CPU", "converted", times.converting_ns)
        }
        LoadLimitedBy::Cpu => ("CPU", "copied from the page cache", times.reading_ns),
    };
    let (threads, share) = (counted(times.threads, "thread"), percent(times.share(ns)));
    let whose = if times.threads == 1 { "its" } else { "their" };
    let direct = match times.limit {
        LoadLimitedBy::Disk => format!("; {} read directly", short_size(times.direct_bytes)),
        _ => String::new(),
    };
    format!("Limit: the {limit}; {threads} {activity} for {share} of {whose} time{direct}.\n")
}

fn converted(conversion: &LoadConversion) -> String {
    let tensors = counted(conversion.converted, "tensor");
    let mut text = format!("Converted to {}: {tensors}", sanitize(&conversion.to));
    if conversion.already > 0 {
        text.push_str(&format!("; {} already had this type", conversion.already));
    }
    if conversion.left > 0 {
        let left = conversion.left;
        text.push_str(&format!("; {left} of other types left unchanged"));
    }
    text.push_str(".\n");
    text
}

/// `3 tensors in 2 files: 94 B`
pub(super) fn tensors_in_files(tensors: u64, files: u64, bytes: u64) -> String {
    format!(
        "{} in {}: {}",
        counted(tensors, "tensor"),
        counted(files, "file"),
        short_size(bytes)
    )
}
