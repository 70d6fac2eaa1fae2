//! A headless Chromium, driven through its DevTools protocol over two pipes.

mod page;
mod pipe;

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

pub use page::Page;
use pipe::Pipe;

const VARIABLE: &str = "PINLANE_CHROMIUM";
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// A browser that is ended when this value is dropped.
pub struct Browser {
    process: Child,
    profile: PathBuf,
    pipe: Pipe,
}

impl Browser {
    /// Starts the browser of this machine, or returns why there is none. The one named by
    /// `PINLANE_CHROMIUM` must start.
    pub fn start() -> Result<Self, String> {
        if let Some(named) = env::var_os(VARIABLE) {
            let program = PathBuf::from(named);
            return Ok(Self::launch(&program).unwrap_or_else(|error| {
                panic!("{VARIABLE} names {}: {error}", program.display());
            }));
        }
        let folders = env::var_os("PATH").unwrap_or_default();
        let program = env::split_paths(&folders)
            .flat_map(|folder| NAMES.map(|name| folder.join(name)))
            .find(|program| program.is_file())
            .ok_or_else(|| format!("no Chromium on PATH, and {VARIABLE} is not set"))?;
        Self::launch(&program).map_err(|error| format!("{}: {error}", program.display()))
    }

    fn launch(program: &Path) -> Result<Self, String> {
        let profile =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chromium-{}", std::process::id()));
        let mut process = spawn(program, &profile).map_err(|error| error.to_string())?;
        let input = process.stdin.take().expect("piped");
        let output = process.stdout.take().expect("piped");
        let mut browser = Self {
            process,
            profile,
            pipe: Pipe::new(input, output),
        };
        browser.pipe.call(None, "Browser.getVersion", json!({}))?;
        Ok(browser)
    }

    /// Opens a file in a window of this size.
    pub fn open(&mut self, path: &Path, window: Window) -> Page<'_> {
        Page::open(&mut self.pipe, path, window)
    }
}

/// The protocol speaks on descriptors 3 and 4, which the shell connects with our pipes.
fn spawn(program: &Path, profile: &Path) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", r#"exec "$@" 3<&0 4>&1 0</dev/null 1>/dev/null"#, "sh"])
        .arg(program)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-extensions",
            "--no-first-run",
            "--remote-debugging-pipe",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // A group of its own, so that its helpers end with it.
        .process_group(0)
        .spawn()
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// What the page is shown on.
#[derive(Clone, Copy)]
pub struct Window {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
    pub touch: bool,
}

pub const DESKTOP: Window = Window {
    width: 1280,
    height: 900,
    dark: false,
    touch: false,
};

pub const PHONE: Window = Window {
    width: 390,
    height: 844,
    dark: true,
    touch: true,
};

/// A protocol event that reports a failure in the page.
fn complaint(event: &Value) -> Option<String> {
    match event["method"].as_str()? {
        "Runtime.exceptionThrown"
        | "Log.entryAdded"
        | "Runtime.consoleAPICalled"
        | "Page.javascriptDialogOpening" => Some(event.to_string()),
        _ => None,
    }
}
