//! Lines of source for native functions, from the debug information of their modules.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use addr2line::Loader;
use pinlane_boost_files::trace::{Frame, Recording};

/// Names native functions by their line where their module has debug information: `copy.c:30 in copy_all`.
pub(super) fn resolve(recordings: &mut [Recording]) {
    let mut modules = HashMap::new();
    let sites = recordings
        .iter_mut()
        .flat_map(|recording| &mut recording.sites);
    for frame in sites.flat_map(|site| &mut site.frames) {
        let Frame::Native {
            name,
            module,
            offset,
        } = frame
        else {
            continue;
        };
        let opened = modules
            .entry(module.clone())
            .or_insert_with(|| Module::open(module));
        if let Some(line) = opened.as_ref().and_then(|module| module.line(*offset)) {
            *name = line;
        }
    }
}

/// A program or shared library.
struct Module {
    loader: Loader,
    /// The address that its first byte was linked for.
    base: u64,
}

impl Module {
    /// `None` if the file is not there any more, or not to be read.
    fn open(path: &str) -> Option<Self> {
        let mut header = Vec::new();
        File::open(path)
            .ok()?
            .take(4096)
            .read_to_end(&mut header)
            .ok()?;
        let loader = Loader::new(path).ok()?;
        let base = linked_base(&header).unwrap_or(0);
        Some(Self { loader, base })
    }

    /// File, line and function at an offset.
    fn line(&self, offset: u64) -> Option<String> {
        let address = self.base.checked_add(offset)?;
        let location = self.loader.find_location(address).ok()??;
        let (file, line) = (in_this_folder(location.file?), location.line?);
        let mut frames = self.loader.find_frames(address).ok()?;
        let function = frames
            .next()
            .ok()
            .flatten()
            .and_then(|frame| frame.function);
        let function = function.and_then(|function| Some(function.demangle().ok()?.into_owned()));
        Some(match function {
            Some(function) => format!("{file}:{line} in {function}"),
            None => format!("{file}:{line}"),
        })
    }
}

/// A file's name as users write it here.
fn in_this_folder(file: &str) -> &str {
    let folder = std::env::current_dir().ok();
    let inside = folder.and_then(|folder| Path::new(file).strip_prefix(folder).ok()?.to_str());
    inside.unwrap_or(file)
}

/// The lowest address that a 64-bit ELF file is loaded at, if it is not moved: not 0 for programs without
/// position-independent code.
fn linked_base(header: &[u8]) -> Option<u64> {
    const LOADED: u64 = 1;
    let number = |at: usize, size: usize| -> Option<u64> {
        let mut value = [0; 8];
        value[..size].copy_from_slice(header.get(at..at.checked_add(size)?)?);
        Some(u64::from_le_bytes(value))
    };
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let segments = (0..count).filter_map(|index| {
        let at = usize::try_from(start.checked_add(index * size)?).ok()?;
        (number(at, 4)? == LOADED).then(|| number(at.checked_add(16)?, 8))?
    });
    segments.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_header_has_no_base() {
        let own = std::fs::read("/proc/self/exe").expect("this program");
        for length in 0..64 {
            assert_eq!(linked_base(&own[..length]), None);
        }
        assert_eq!(linked_base(&own[..4096]), Some(0));
    }

    #[test]
    fn modules_that_cannot_be_read_have_no_lines() {
        assert!(Module::open("/no/such/module").is_none());
        assert!(Module::open("/etc/passwd").is_none());
        assert!(Module::open("").is_none());
    }
}
