//! A load as text.

use super::{
    Load, LoadConversion, LoadCopies, LoadHost, LoadLimitedBy, LoadLocalRank, LoadSharing,
    LoadTimes, LoadVerify,
};
use crate::Origin;
use crate::format::{byte_rate, counted, duration, percent, short_size};
use crate::text_layout::{sanitize, table_row};

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
        if let Some(local_rank) = self.runs.last().and_then(|run| run.local_rank) {
            text.push_str(&local_rank.line());
        }
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
        let (done, all) = (verify.tensors, counted(self.job.tensors, "tensor"));
        let (tensors, end) = match done < self.job.tensors {
            true => (format!("{done} of {all}"), "; then INTERRUPTED"),
            false => (counted(done, "tensor"), ""),
        };
        let converted = self.conversion.as_ref().filter(|it| it.converted > 0);
        let after = converted.map_or_else(String::new, |conversion| {
            format!(" after conversion to {}", sanitize(&conversion.to))
        });
        format!("Verified: {tensors} read back, all bytes match the files{after}{end}.\n")
    }

    fn measured(&self) -> String {
        let names = ["run", "time", "rate", "page cache", "direct"];
        let mut text = table_row(&WIDTHS, &names);
        for (number, run) in (1..).zip(&self.runs) {
            if let Some(times) = &run.times {
                let cells = [
                    number.to_string(),
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
        let [headers, context, load] =
            [typical.headers_ns, typical.context_ns, typical.load_ns].map(duration);
        let context = match typical.context_ns {
            0 => String::new(),
            _ => format!("context creation {context}, "),
        };
        text.push_str(&format!(
            "From open until all tensors are ready: headers {headers}, {context}allocation and loading {load}. \
             GB is 10^9 bytes.\n",
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
        for (number, run) in (1..).zip(&self.runs) {
            let number = number.to_string();
            text.push_str(&match run.simulated_copies {
                None => table_row(&WIDTHS, &[&number, "not measured"]),
                Some(LoadCopies { count, bytes, ns }) => {
                    let rate = match ns {
                        0 => "–".to_owned(),
                        ns => byte_rate(bytes as f64 / ns as f64),
                    };
                    let (copied, count) = (short_size(bytes), count.to_string());
                    table_row(&WIDTHS, &[number, duration(ns), rate, copied, count])
                }
            });
        }
        text.push_str(
            "SIMULATED time of the copies only; reading files takes no simulated time, so no limit is reported. \
             GB is 10^9 bytes.\n\n",
        );
        if let Some(host) = self.runs.last().and_then(|run| run.host) {
            text.push_str(&host.lines());
        }
        text
    }
}

impl LoadLocalRank {
    fn line(&self) -> String {
        let sharing = match self.sharing {
            LoadSharing::PageCache => {
                "all read through the page cache, each from another place, so that the disk is read once"
            }
            LoadSharing::NoRoom => {
                "the files take more than half of the available memory, so each reads for itself"
            }
            LoadSharing::OwnRows => "each reads its own rows",
            LoadSharing::Direct => "each reads for itself, bypassing the page cache",
        };
        format!(
            "Rank {} of {} on this machine: {sharing}.\n",
            self.rank, self.world
        )
    }
}

impl LoadHost {
    /// Two lines: times differ from run to run, and one line might have to be broken.
    fn lines(&self) -> String {
        let mut text = format!(
            "Host, real time: headers {}, reading {}",
            duration(self.headers_ns),
            duration(self.reading_ns),
        );
        if self.converting_ns > 0 {
            text.push_str(&format!(", converting {}", duration(self.converting_ns)));
        }
        let [cached, direct] = [self.page_cache_bytes, self.direct_bytes].map(short_size);
        let threads = counted(self.threads, "thread");
        text + &format!(
            ".\nHost: {threads} read {cached} through the page cache, {direct} direct.\n"
        )
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
    let already = match conversion.already {
        0 => String::new(),
        already => format!("; {already} already had this type"),
    };
    let left = match conversion.left {
        0 => String::new(),
        left => format!("; {left} of other types left unchanged"),
    };
    let to = sanitize(&conversion.to);
    format!("Converted to {to}: {tensors}{already}{left}.\n")
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
