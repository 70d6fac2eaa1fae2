//! PTX modules: their kernels' names, and the CPU twins of these.

use pinlane_driver::ErrorKind;
use pinlane_kernels::Kernel;

use crate::slab::Id;

/// A loaded module.
pub(crate) struct Module {
    pub(crate) device: usize,
    entries: Vec<String>,
    /// Functions that were looked up, by name.
    pub(crate) functions: Vec<(String, Id)>,
}

impl Module {
    /// Reads the names of a module's kernels; says what is wrong with it otherwise.
    pub(crate) fn parse(device: usize, ptx: &str) -> Result<Self, &'static str> {
        let text = without_comments(ptx);
        if !text.contains(".version") {
            return Err("no .version line");
        }
        let mut entries = Vec::new();
        for after in text.split(".entry").skip(1) {
            let after = after.trim_start();
            let end = after.find(|c: char| !(c.is_alphanumeric() || "_$%".contains(c)));
            match &after[..end.unwrap_or(after.len())] {
                "" => return Err("an .entry has no name"),
                entry => entries.push(entry.to_owned()),
            }
        }
        if entries.is_empty() {
            return Err("no .entry");
        }
        Ok(Self {
            device,
            entries,
            functions: Vec::new(),
        })
    }

    /// The CPU twin of a kernel of this module: one of the user's, or a built-in one.
    pub(crate) fn twin(
        &self,
        wanted: &str,
        added: &[Kernel],
    ) -> Result<Kernel, (ErrorKind, String)> {
        if !self.entries.iter().any(|entry| entry == wanted) {
            let detail = format!("no kernel `{wanted}` in the module");
            return Err((ErrorKind::NotFound, detail));
        }
        let added = added.iter().find(|kernel| kernel.name == wanted);
        let twin = added.or_else(|| pinlane_kernels::find(wanted));
        twin.copied().ok_or_else(|| {
            let detail = format!(
                "the simulated GPU has no CPU twin of kernel `{wanted}`; add one with \
                 Sim::builder().kernel(Kernel {{ name: \"{wanted}\", .. }}), see SimBuilder::kernel"
            );
            (ErrorKind::NotSupported, detail)
        })
    }
}

/// Removes `//` and `/* */` comments.
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
