//! Errors name the right tensor of a piece that holds many.

use pinlane::load::{Dtype, Io, LoadErrorKind, Weights};
use pinlane_driver::Call;

use super::rig::{Rig, config, file};
use super::support::Scratch;
use pinlane_testing::{Spring, Trap};
use pinlane_testing::{must_return, sim};

/// The copy of the second tensor fails.
#[test]
fn the_tensor_whose_copy_failed_is_named() {
    let scratch = Scratch::new();
    let tensors: &[(&str, Dtype, &[u64])] = &[("a", Dtype::U8, &[3]), ("b", Dtype::U8, &[5])];
    let path = file(&scratch, "two.safetensors", tensors, 1);
    let weights = Weights::open(path).expect("a good file");
    let sim = sim();
    let (device, trap) = Trap::under(&sim);
    let rig = Rig::with(sim, device);
    for (at, name) in [(0, "a"), (1, "b")] {
        trap.set(Call::CopyAsync, at, Spring::Fail);
        let error = weights.load(&rig.device, &config(1)).expect_err("refused");
        assert_eq!(trap.disarm(), 1);
        assert_eq!(error.tensor(), Some(name), "{error}");
    }
    rig.assert_clean();
}

/// Makes reads at this offset and beyond fail, in this thread and in threads it starts. Returns whether
/// the system allows that.
fn fail_reads_from(offset: u32) -> bool {
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let at_least = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let say = libc::BPF_RET | libc::BPF_K;
    let mut filter = [
        step(load, 0, 0, 0), // system call number
        step(equal, libc::SYS_pread64 as u32, 0, 3),
        step(load, 16 + 3 * 8, 0, 0), // fourth argument
        step(at_least, offset, 0, 1),
        step(say, libc::SECCOMP_RET_ERRNO | libc::EIO as u32, 0, 0),
        step(say, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: `filter` describes `steps`, and the system copies both.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    set == 0
}

/// The second page of a piece cannot be read: the error names the tensor there.
#[test]
fn the_tensor_whose_read_failed_is_named() {
    for io in [Io::Buffered, Io::Direct, Io::Auto] {
        must_return(move || {
            let scratch = Scratch::new();
            let tensors: &[(&str, Dtype, &[u64])] =
                &[("a", Dtype::U8, &[100]), ("b", Dtype::U8, &[12_000])];
            let path = file(&scratch, "two.safetensors", tensors, 1);
            let weights = Weights::open(&path).expect("a good file");
            assert!(weights.tensors()[0].bytes().end < 4096);
            let rig = Rig::new();
            if !fail_reads_from(4096) {
                println!("skipped: reads cannot be made to fail here");
                return;
            }
            let error = weights
                .load(&rig.device, &config(2).io(io))
                .expect_err("not readable");
            if matches!(error.kind(), LoadErrorKind::DirectIoUnsupported { .. }) {
                return;
            }
            assert!(
                matches!(error.kind(), LoadErrorKind::Io { action: "read", .. }),
                "{error}"
            );
            assert_eq!(error.file(), Some(path.as_path()));
            assert_eq!(error.tensor(), Some("b"), "{error}");
            rig.assert_clean();
        });
    }
}
