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

/// Signals that are not passed on: those that this process causes itself, those that stop it with the program's whole
/// group, and those that cannot be blocked.
const NOT_PASSED_ON: [libc::c_int; 16] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
    libc::SIGPIPE,
    libc::SIGXFSZ,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
    libc::SIGURG,
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
    let (mask, of_children) = (blocked.before, blocked.of_children);
    let restore = move || {
        // SAFETY: changes the child's only thread; both calls are allowed between fork and exec.
        let code = unsafe {
            libc::signal(libc::SIGCHLD, of_children);
            libc::pthread_sigmask(libc::SIG_SETMASK, &mask, ptr::null_mut())
        };
        match code {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    };
    // SAFETY: the closure makes two calls, which are allowed there.
    let mut child = unsafe { command.pre_exec(restore) }.spawn()?;
    let process = child.id() as libc::pid_t;
    loop {
        let (signal, sender) = blocked.next()?;
        if signal == libc::SIGCHLD {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
        } else if sender.is_some_and(|sender| sender != process) {
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
    /// What was done about the end of children before. If it was ignored, nothing would say that the program ended.
    of_children: libc::sighandler_t,
}

impl BlockedSignals {
    fn new() -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the first call fills in the set, the others change it. The signals exist.
        let set = unsafe {
            libc::sigfillset(set.as_mut_ptr());
            for signal in NOT_PASSED_ON {
                libc::sigdelset(set.as_mut_ptr(), signal);
            }
            set.assume_init()
        };
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets outlive the call.
        let code = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, before.as_mut_ptr()) };
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        // SAFETY: the call has written it.
        let before = unsafe { before.assume_init() };
        // SAFETY: the default for this signal is to do nothing.
        let of_children = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        Ok(Self {
            set,
            before,
            of_children,
        })
    }

    /// Waits for a signal. Returns also the process that sent it; `None` for the kernel, as the terminal does.
    fn next(&self) -> io::Result<(libc::c_int, Option<libc::pid_t>)> {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        loop {
            // SAFETY: both outlive the call.
            let signal = unsafe { libc::sigwaitinfo(&self.set, info.as_mut_ptr()) };
            if signal > 0 {
                // SAFETY: the call has written it. Signals that a process sent have its number.
                let (code, sender) = unsafe {
                    let info = info.assume_init();
                    (info.si_code, info.si_pid())
                };
                return Ok((signal, (code <= 0).then_some(sender)));
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
        // SAFETY: puts back what was there when the signals were blocked.
        unsafe {
            libc::signal(libc::SIGCHLD, self.of_children);
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut());
        }
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
