//! `pinlane completions` and `pinlane man`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap_complete::Shell;

use crate::output;

#[derive(clap::Args)]
pub(crate) struct Completions {
    /// Shell to generate completions for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct Man {
    /// Write one page for the tool and one for each command to this folder
    ///
    /// Without it, the tool's own page is printed.
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(crate) fn completions(args: &Completions, mut tool: clap::Command) -> anyhow::Result<bool> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tool, "pinlane", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(true)
}

pub(crate) fn man(args: &Man, tool: clap::Command) -> anyhow::Result<bool> {
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        let tool = tool.disable_help_subcommand(true);
        clap_mangen::Man::new(tool).render(&mut page)?;
        output::print(&String::from_utf8_lossy(&page))?;
        return Ok(true);
    };
    let context = || format!("cannot write --output {}", folder.display());
    fs::create_dir_all(folder).with_context(context)?;
    clap_mangen::generate_to(tool, folder).with_context(context)?;
    output::print(&format!("Written to {}\n", folder.display()))?;
    Ok(true)
}
