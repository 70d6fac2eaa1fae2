//! `pinlane completions` and `pinlane man`: from the same words that the tool reads.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args;
use crate::output::Output;

#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct Man {
    /// Write a page for the tool and one for each command into this folder
    ///
    /// Without it the tool's own page goes to standard output.
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Print what makes a shell complete the tool's words.
pub(crate) fn completions(args: &Completions, output: &mut Output) -> anyhow::Result<bool> {
    let mut command = args::Args::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "pinlane", &mut script);
    output.print(&String::from_utf8_lossy(&script))?;
    Ok(true)
}

/// Print the tool's page, or write all pages.
pub(crate) fn man(args: &Man, output: &mut Output) -> anyhow::Result<bool> {
    let Some(folder) = &args.output else {
        let page = page(args::Args::command())?;
        output.print(&String::from_utf8_lossy(&page))?;
        return Ok(true);
    };
    let cannot = || format!("--output {} cannot be written", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    clap_mangen::generate_to(args::Args::command(), folder).with_context(cannot)?;
    output.print(&format!("written to {}\n", folder.display()))?;
    Ok(true)
}

fn page(command: clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    let command = command.disable_help_subcommand(true);
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}
