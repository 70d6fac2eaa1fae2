//! Runs a program as if it had been started directly: it has the terminal, gets the signals, and its exit status
//! becomes the caller's.
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! let status = pinlane_supervise::run(&mut std::process::Command::new("make"))?;
//! eprintln!("make is done");
//! pinlane_supervise::exit_as(status)
//! # }
//! ```

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::ptr;

/// Signals that are passed on.
const PASSED_ON: [libc::c_int; 6] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Starts the program and waits for its end. Meanwhile it gets every signal that this process is sent. Ctrl-C reaches it
/// from the terminal, like everything in the terminal's foreground.
///
/// Call it on a thread whose process has no others: they would take the signals.
///
/// # Errors
/// If the program cannot be started.
pub fn run(command: &mut Command) -> io::Result<ExitStatus> {
    let blocked = BlockedSignals::new()?;
    let before = blocked.before;
    let restore = move || {
        // SAFETY: sets the mask of the child's only thread; allowed between fork and exec.
        match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut()) } {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    };
    // SAFETY: the closure makes one call, which is allowed there.
    let mut child = unsafe { command.pre_exec(restore) }.spawn()?;
    let process = child.id() as libc::pid_t;
    loop {
        let (signal, is_from_terminal) = blocked.next()?;
        if signal == libc::SIGCHLD {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
        } else if !is_from_terminal {
            // SAFETY: the child has not been waited for, so the number is its own.
            unsafe { libc::kill(process, signal) };
        }
    }
}

/// Ends this process as the program ended: with its exit status, or by its signal.
pub fn exit_as(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal() {
        let no_core = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: changes this process, which ends here.
        unsafe {
            // The program has left its own core.
            libc::setrlimit(libc::RLIMIT_CORE, &no_core);
            libc::signal(signal, libc::SIG_DFL);
            let only = signal_set(&[signal]);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &only, ptr::null_mut());
            libc::raise(signal);
        }
        // Shells say it like this.
        std::process::exit(128 + signal)
    }
    std::process::exit(status.code().unwrap_or(1))
}

/// Signals that wait until they are asked for, until this is dropped.
struct BlockedSignals {
    set: libc::sigset_t,
    /// What was blocked before.
    before: libc::sigset_t,
}

impl BlockedSignals {
    fn new() -> io::Result<Self> {
        let set = signal_set(&[&PASSED_ON[..], &[libc::SIGCHLD]].concat());
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets outlive the call.
        let code = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, before.as_mut_ptr()) };
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        // SAFETY: the call has written it.
        let before = unsafe { before.assume_init() };
        Ok(Self { set, before })
    }

    /// Waits for a signal. Returns also whether the terminal sent it.
    fn next(&self) -> io::Result<(libc::c_int, bool)> {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        loop {
            // SAFETY: both outlive the call.
            let signal = unsafe { libc::sigwaitinfo(&self.set, info.as_mut_ptr()) };
            if signal > 0 {
                // SAFETY: the call has written it.
                let code = unsafe { info.assume_init() }.si_code;
                return Ok((signal, code == libc::SI_KERNEL));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled in when the signals were blocked.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

fn signal_set(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call fills in the set, the others change it. The signals exist.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}
