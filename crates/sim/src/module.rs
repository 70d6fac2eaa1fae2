//! PTX modules: as much of them as a device without a compiler needs.

use std::sync::Arc;

use pinlane_driver::{Call, Error, ErrorKind, Result};
use pinlane_kernels::Kernel;

use crate::calls::name;
use crate::slab::Id;

/// A loaded module.
pub(crate) struct Module {
    pub(crate) device: usize,
    entries: Vec<String>,
    /// Functions that were asked for, by name.
    pub(crate) functions: Vec<(String, Id)>,
}

impl Module {
    /// Reads the names of the kernels.
    pub(crate) fn parse(device: usize, ptx: &str) -> Result<Self> {
        let refused =
            |why: &str| Error::new(ErrorKind::InvalidPtx, name(Call::ModuleLoad)).with_detail(why);
        let text = without_comments(ptx);
        if !text.contains(".version") {
            return Err(refused("there is no .version line"));
        }
        let mut entries = Vec::new();
        for after in text.split(".entry").skip(1) {
            let after = after.trim_start();
            let end = after.find(|c: char| !(c.is_alphanumeric() || "_$%".contains(c)));
            match &after[..end.unwrap_or(after.len())] {
                "" => return Err(refused("an .entry has no name")),
                entry => entries.push(entry.to_owned()),
            }
        }
        if entries.is_empty() {
            return Err(refused("there is no .entry"));
        }
        Ok(Self {
            device,
            entries,
            functions: Vec::new(),
        })
    }

    /// The CPU twin of a kernel of this module.
    pub(crate) fn twin(&self, wanted: &str, added: &[Arc<Kernel>]) -> Result<Arc<Kernel>> {
        let error =
            |kind, detail| Err(Error::new(kind, name(Call::ModuleFunction)).with_detail(detail));
        if !self.entries.iter().any(|entry| entry == wanted) {
            return error(
                ErrorKind::NotFound,
                format!("no kernel `{wanted}` in the module"),
            );
        }
        if let Some(kernel) = added.iter().find(|kernel| kernel.name == wanted) {
            return Ok(Arc::clone(kernel));
        }
        match pinlane_kernels::find(wanted) {
            Some(kernel) => Ok(Arc::new(Kernel {
                name: kernel.name,
                params: kernel.params,
                run: kernel.run,
                bytes_touched: kernel.bytes_touched,
                fixed_ns: kernel.fixed_ns,
            })),
            None => error(
                ErrorKind::NotSupported,
                format!("kernel `{wanted}` has no CPU twin, which a simulated device needs"),
            ),
        }
    }
}

/// The text with `//` and `/* */` comments taken out.
fn without_comments(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    let mut rest = ptx;
    while let Some(at) = rest.find('/') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        rest = if from.starts_with("//") {
            from.find('\n').map_or("", |end| &from[end..])
        } else if from.starts_with("/*") {
            from.find("*/").map_or("", |end| &from[end + 2..])
        } else {
            text.push('/');
            &from[1..]
        };
    }
    text.push_str(rest);
    text
}
