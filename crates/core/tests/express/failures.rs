//! A driver call that fails in the middle of a copy: the error is reported, nothing hangs or leaks, and
//! the next copy works.

use half::bf16;
use pinlane::{Device, F32ToBf16, Stream, U8ToF32};
use pinlane_driver::Call;

use pinlane_testing::must_return;
use pinlane_testing::{CHUNK_BYTES, Spring, Trap, assert_same, is_injected, pattern, set_up};

/// A kind of copy. Returns the error, or checks all bytes.
pub type Copy = fn(&Device, &Stream) -> pinlane::Result<()>;

pub const COPIES: [(&str, Copy); 6] = [
    ("upload", upload),
    ("download", download),
    ("upload_many", upload_many),
    ("download_many", download_many),
    ("upload_as", upload_as),
    ("download_as", download_as),
];

/// Driver calls that a copy makes.
pub const CALLS: [Call; 12] = [
    Call::CopyAsync,
    Call::StreamCreate,
    Call::StreamWaitEvent,
    Call::EventRecord,
    Call::EventCreate,
    Call::EventSynchronize,
    Call::EventQuery,
    Call::Launch,
    Call::HostAlloc,
    Call::DeviceAlloc,
    Call::ModuleLoad,
    Call::StreamIsCapturing,
];

const BYTES: usize = 4 * CHUNK_BYTES + 100;

fn upload(device: &Device, stream: &Stream) -> pinlane::Result<()> {
    let source = pattern(BYTES, 1);
    let mut target = device.alloc::<u8>(BYTES)?;
    stream.copy_to_device(&source, &mut target)?;
    stream.copy_to_device(&source[..100], target.range_mut(..100))?;
    assert_same(&stream.copy_to_vec(&target)?, &source, "upload");
    Ok(())
}

fn download(device: &Device, stream: &Stream) -> pinlane::Result<()> {
    let source = pattern(BYTES, 2);
    let mut buffer = device.alloc::<u8>(BYTES)?;
    stream.copy_to_device(&source, &mut buffer)?;
    let mut back = vec![0; BYTES];
    stream.copy_to_host(&buffer, &mut back)?;
    assert_same(&back, &source, "download");
    stream.copy_to_host(buffer.range(..100), &mut back[..100])?;
    assert_same(&back, &source, "small download");
    Ok(())
}

fn upload_many(device: &Device, stream: &Stream) -> pinlane::Result<()> {
    let source = pattern(BYTES, 3);
    let mut target = device.alloc::<u8>(BYTES)?;
    stream.fill_bytes(&mut target, 0)?;
    let places = target.whole_mut().chunks(1000).map(|place| {
        let len = place.len() - 1;
        place.range(..len)
    });
    let pieces = source.chunks(1000).map(|piece| &piece[..piece.len() - 1]);
    stream.upload_many(pieces.zip(places))?;
    let mut expected = source;
    for piece in expected.chunks_mut(1000) {
        *piece.last_mut().expect("not empty") = 0;
    }
    assert_same(&stream.copy_to_vec(&target)?, &expected, "upload_many");
    Ok(())
}

fn download_many(device: &Device, stream: &Stream) -> pinlane::Result<()> {
    let source = pattern(BYTES, 4);
    let mut buffer = device.alloc::<u8>(BYTES)?;
    stream.copy_to_device(&source, &mut buffer)?;
    let mut back = vec![0; BYTES - 1];
    let mut at = 0;
    let pieces = back.chunks_mut(900).map(|target| {
        at += target.len();
        (buffer.range(at - target.len()..at), target)
    });
    // Last piece first, so that no piece follows its neighbour.
    let mut pieces: Vec<_> = pieces.collect();
    pieces.reverse();
    stream.download_many(pieces)?;
    assert_same(&back, &source[..BYTES - 1], "download_many");
    Ok(())
}

fn upload_as(device: &Device, stream: &Stream) -> pinlane::Result<()> {
    let source = pattern(BYTES / 2, 5);
    let mut target = device.alloc::<f32>(source.len())?;
    let conversion = U8ToF32 {
        scale: 2.0,
        offset: 1.0,
    };
    stream.upload_as(conversion, &source, &mut target)?;
    let expected: Vec<f32> = source.iter().map(|&x| f32::from(x) * 2.0 + 1.0).collect();
    assert_same(&stream.copy_to_vec(&target)?, &expected, "upload_as");
    Ok(())
}

fn download_as(device: &Device, stream: &Stream) -> pinlane::Result<()> {
    let source: Vec<f32> = pattern(BYTES / 2, 6).into_iter().map(f32::from).collect();
    let mut buffer = device.alloc::<f32>(source.len())?;
    stream.copy_to_device(&source, &mut buffer)?;
    let mut back = vec![bf16::ZERO; source.len()];
    stream.download_as(F32ToBf16, &buffer, &mut back)?;
    let found: Vec<f32> = back.iter().map(|x| x.to_f32()).collect();
    assert_same(&found, &source, "download_as");
    Ok(())
}

/// Whether the call failed.
fn fail_once(
    name: &str,
    copy: Copy,
    call: Call,
    at: u64,
    lanes: usize,
    ring_chunks: usize,
) -> bool {
    let what = format!("{name}, {call:?} {at}, {lanes} lanes, {ring_chunks} slots");
    let sim = pinlane_testing::sim();
    let (device, trap) = Trap::under(&sim);
    set_up(&device, lanes, ring_chunks);
    let stream = device.stream().unwrap();
    trap.set(call, at, Spring::Fail);
    let failed = copy(&device, &stream);
    let sprung = trap.disarm();
    let stray = device.take_stray_errors();
    let reported = failed.as_ref().is_err_and(is_injected) || stray.iter().any(is_injected);
    assert_eq!(reported, sprung > 0, "{what}: {failed:?}, stray {stray:?}");
    assert!(
        failed.is_ok() || failed.as_ref().is_err_and(is_injected),
        "{what}: {failed:?}"
    );
    copy(&device, &stream).unwrap_or_else(|error| panic!("{what}, next: {error}"));
    stream.synchronize().unwrap();
    pinlane_testing::assert_empty(&device);
    drop((stream, device));
    let findings = sim.finish();
    assert!(findings.is_empty(), "{what}: {findings:#?}");
    sprung > 0
}

#[test]
fn a_failed_call_is_reported_and_the_next_copy_works() {
    let mut sprung = 0;
    for (lanes, ring_chunks) in [(1, 1), (2, 3), (4, 2)] {
        for (name, copy) in COPIES {
            sprung += must_return(move || {
                let mut sprung = 0;
                for call in CALLS {
                    // Until the copy makes no further such call.
                    let strikes = |at: &u64| fail_once(name, copy, call, *at, lanes, ring_chunks);
                    sprung += (0..12).take_while(strikes).count();
                }
                sprung
            });
        }
    }
    assert!(sprung > 300, "only {sprung} failures");
}
