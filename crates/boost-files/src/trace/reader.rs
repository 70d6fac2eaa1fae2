//! Reads trace files. A program may have been killed at any point, so whatever is not complete is left out.

use std::path::{Path, PathBuf};
use std::{error, fmt, fs, io};

use super::event::{EVENT_WORDS, Event};
use super::layout::{
    EVENTS_AT, FORMAT, HEADER_WORDS, Header, MAX_EVENTS, MAX_SITES, SITE_WORDS, SITES_AT, SiteWord,
    TEXT_AT, TEXT_BYTES, unpack_place,
};
use super::recording::{Frame, PythonLines, Recording, Site, Totals};
use super::trace_file::{ENDING, SiteKey};

/// Why a trace cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// The folder or a file cannot be read.
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not a trace, or of another version of the library.
    NotATrace,
    /// The file ends within its header.
    TooShort {
        /// Its size.
        bytes: usize,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Self::NotATrace => write!(f, "not a trace of this version"),
            Self::TooShort { bytes } => write!(f, "the trace is cut: it has only {bytes} bytes"),
        }
    }
}

impl error::Error for TraceError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The traces of all processes that have left one in `folder`, in order of their start. Files that are no traces are
/// left out.
///
/// # Errors
/// If the folder cannot be read.
pub fn read_traces(folder: &Path) -> Result<Vec<Recording>, TraceError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| TraceError::Io { path, source }
    };
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            // One that is gone or unreadable does not count.
            all.extend(fs::read(&path).ok().and_then(|bytes| parse(&bytes).ok()));
        }
    }
    all.sort_by_key(|recording| (recording.start_ns, recording.process));
    Ok(all)
}

/// The trace in a file. What is missing at its end, or was not written completely, is left out.
///
/// # Errors
/// If there is no whole header, or not of this version.
pub fn parse(bytes: &[u8]) -> Result<Recording, TraceError> {
    let file = Words(bytes);
    if bytes.len() < HEADER_WORDS * 8 {
        return Err(TraceError::TooShort { bytes: bytes.len() });
    }
    let header = |word: Header| file.at(word as usize).unwrap_or(0);
    if header(Header::Format) != FORMAT {
        return Err(TraceError::NotATrace);
    }
    let site_count = header(Header::Sites).min(MAX_SITES as u64) as usize;
    // A site is left out only at the end, where no event refers to it yet.
    let sites: Vec<Site> = (0..site_count)
        .map_while(|index| file.site(index))
        .collect();
    let claimed = header(Header::Events).min(MAX_EVENTS as u64) as usize;
    let events = (0..claimed).filter_map(|index| file.event(index));
    let mut events: Vec<Event> = events
        .filter(|event| (event.site as usize) < sites.len())
        .collect();
    events.sort_by_key(|event| event.start_ns);
    let calls = sites.iter().map(|site| site.totals.calls);
    let python = PythonLines::ALL.get(header(Header::Python) as usize);
    Ok(Recording {
        process: header(Header::Process) as u32,
        command: file.text(header(Header::Command)),
        start_ns: header(Header::StartNs),
        end_ns: Some(header(Header::EndNs)).filter(|end_ns| *end_ns > 0),
        python: python.copied().unwrap_or(PythonLines::NoPython),
        calls: calls.fold(0, u64::saturating_add),
        sites,
        events,
    })
}

/// A file as words.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn at(&self, index: usize) -> Option<u64> {
        let (words, _) = self.0.as_chunks::<8>();
        words.get(index).map(|word| u64::from_ne_bytes(*word))
    }

    fn site(&self, index: usize) -> Option<Site> {
        let word = |word: SiteWord| self.at(SITES_AT + index * SITE_WORDS + word as usize);
        let key = SiteKey::from_word(word(SiteWord::Key)?)?;
        let text = self.text(word(SiteWord::Text)?);
        Some(Site {
            frames: text.lines().filter_map(frame).collect(),
            operation: key.operation,
            route: key.route,
            memory: key.memory,
            is_async: key.is_async,
            totals: Totals {
                calls: word(SiteWord::Calls)?,
                bytes: word(SiteWord::Bytes)?,
                ns: word(SiteWord::Ns)?,
                longest_ns: word(SiteWord::LongestNs)?,
                failures: word(SiteWord::Failures)?,
                failure_code: word(SiteWord::FailureCode)? as u32,
            },
        })
    }

    fn event(&self, index: usize) -> Option<Event> {
        let mut words = [0; EVENT_WORDS];
        for (word, at) in words.iter_mut().zip(EVENTS_AT + index * EVENT_WORDS..) {
            *word = self.at(at)?;
        }
        Event::from_words(words)
    }

    /// The text at a place; empty if it lies outside.
    fn text(&self, place: u64) -> String {
        let (offset, length) = unpack_place(place);
        let area = self.0.get(TEXT_AT * 8..).unwrap_or_default();
        let area = &area[..area.len().min(TEXT_BYTES)];
        // No site has more, and thousands of sites may name one place in a damaged file.
        let bytes = area.get(offset..offset.saturating_add(length.min(64 << 10)));
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    }
}

/// A frame from its line of text.
fn frame(line: &str) -> Option<Frame> {
    let mut parts = line.splitn(4, '\t');
    match parts.next()? {
        "P" => Some(Frame::Python {
            line: parts.next()?.parse().ok()?,
            function: parts.next()?.to_owned(),
            file: parts.next()?.to_owned(),
        }),
        "N" => Some(Frame::Native {
            offset: parts.next()?.parse().ok()?,
            name: parts.next()?.to_owned(),
            module: parts.next()?.to_owned(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HostMemory, Operation, Route, TraceFile};
    use super::*;

    fn event(site: u32, start_ns: u64) -> Event {
        Event {
            start_ns,
            ns: 50,
            bytes: 4096,
            stream: 7,
            host: 0x1000,
            other: 0x2000,
            site,
            thread: 42,
            operation: Operation::Copy,
            route: Route::Upload,
            memory: HostMemory::Pageable,
            is_async: true,
            result: 0,
            launches: 3,
        }
    }

    fn frames() -> Vec<Frame> {
        vec![
            Frame::Python {
                file: "train\tme.py".into(),
                line: 12,
                function: "main".into(),
            },
            Frame::Native {
                name: "libx.so!f+0x10".into(),
                module: "/lib/libx.so".into(),
                offset: 0x1234,
            },
        ]
    }

    /// A file with two events of one site, one of them failed.
    fn written() -> Vec<u8> {
        let name = format!(
            "pinlane-trace-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        );
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        let trace = TraceFile::create(&folder, 5, "python train.py").unwrap();
        let key = SiteKey {
            operation: Operation::Copy,
            route: Route::Upload,
            memory: HostMemory::Pageable,
            is_async: true,
        };
        let site = trace.add_site(key, &frames());
        trace.add_event(event(site, 20), true);
        trace.add_event(
            Event {
                result: 1,
                ..event(site, 10)
            },
            true,
        );
        trace.add_event(event(site, 30), false);
        trace.set_python(PythonLines::Known);
        assert_eq!(read_traces(&folder).unwrap().len(), 1);
        let path = fs::read_dir(&folder)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let bytes = fs::read(path).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let recording = parse(&written()).unwrap();
        assert_eq!(recording.command, "python train.py");
        assert_eq!(recording.process, std::process::id());
        assert_eq!((recording.start_ns, recording.end_ns), (5, None));
        assert_eq!(recording.python, PythonLines::Known);
        assert_eq!(recording.sites.len(), 2);
        let site = &recording.sites[1];
        let Frame::Python { file, .. } = &site.frames[0] else {
            panic!("no Python frame: {:?}", site.frames);
        };
        assert_eq!(file, "train me.py");
        assert_eq!(site.frames[1], frames()[1]);
        let totals = site.totals;
        assert_eq!(
            (totals.calls, totals.bytes, totals.failures),
            (3, 3 * 4096, 1)
        );
        let expected = [
            Event {
                result: 1,
                ..event(1, 10)
            },
            event(1, 20),
        ];
        assert_eq!(recording.events, expected);
        assert_eq!(recording.calls_not_stored(), 1);
    }

    #[test]
    fn a_cut_file_is_an_error_or_what_is_left() {
        let whole = written();
        assert!(matches!(parse(&[]), Err(TraceError::TooShort { bytes: 0 })));
        assert!(matches!(
            parse(&whole[..100]),
            Err(TraceError::TooShort { bytes: 100 })
        ));
        for length in (HEADER_WORDS * 8..whole.len()).step_by(9973) {
            let recording = parse(&whole[..length]).unwrap();
            assert!(recording.sites.len() <= 2 && recording.events.len() <= 2);
        }
    }

    #[test]
    fn damage_is_no_panic() {
        let whole = written();
        // A linear congruential generator is random enough to hit every field.
        let mut state = 1_u64;
        for _ in 0..20 {
            let mut damaged = whole[..(EVENTS_AT + 64) * 8].to_vec();
            for _ in 0..200 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let at = 8 + (state >> 33) as usize % (SITES_AT * 8 + 512);
                damaged[at] = (state >> 24) as u8;
            }
            let recording = parse(&damaged).unwrap();
            assert!(
                recording
                    .events
                    .iter()
                    .all(|event| (event.site as usize) < recording.sites.len())
            );
        }
    }

    #[test]
    fn calls_beyond_the_limit_are_counted() {
        let folder =
            std::env::temp_dir().join(format!("pinlane-trace-full-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let trace = TraceFile::create(&folder, 5, "").unwrap();
        for start_ns in 1..=MAX_EVENTS as u64 + 7 {
            trace.add_event(event(0, start_ns), true);
        }
        let recordings = read_traces(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(recordings[0].events.len(), MAX_EVENTS);
        assert_eq!(recordings[0].calls_not_stored(), 7);
    }

    #[test]
    fn sites_beyond_the_limit_are_one() {
        let folder =
            std::env::temp_dir().join(format!("pinlane-trace-sites-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let trace = TraceFile::create(&folder, 5, "").unwrap();
        let key = SiteKey {
            operation: Operation::Copy,
            route: Route::Upload,
            memory: HostMemory::Pageable,
            is_async: false,
        };
        // Long names: the area for text is full before the table is.
        let long = [Frame::named("x".repeat(1000))];
        let indices: Vec<u32> = (0..MAX_SITES + 3)
            .map(|_| trace.add_site(key, &long))
            .collect();
        let recordings = read_traces(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(indices[MAX_SITES - 2..], [MAX_SITES as u32 - 1, 0, 0, 0, 0]);
        assert_eq!(recordings[0].sites.len(), MAX_SITES);
        assert_eq!(recordings[0].sites[1].frames, long);
        assert!(recordings[0].sites[MAX_SITES - 1].frames.is_empty());
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(parse(&[7; 1000]), Err(TraceError::NotATrace)));
    }
}
