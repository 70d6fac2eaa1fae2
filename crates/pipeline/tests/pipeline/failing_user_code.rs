//! User code that fails in each stage: the error says where, all buffers are free, and the pipeline
//! works again.

use std::error::Error as _;
use std::io::{self, Read, Write};

use pinlane::Error;
use pinlane::pipeline::{
    Cause, Input, Output, Pipeline, PipelineConfig, PipelineError, PipelineOrder, StageKind,
};

use super::checked_job::Job;
use super::input_and_output_kinds::{From, To};
use super::rig::{ORDERS, Rig, config};
use pinlane_testing::must_return;

const ITEMS: usize = 70;
const CHUNK_ITEMS: usize = 10;
/// Chunks in which something fails: the first, one in the middle of a group, the last.
const AT: [u64; 3] = [0, 3, 6];

fn broken() -> io::Error {
    io::Error::other("broken on purpose")
}

/// Everything that can be told of a failure is right, and the next run is, too.
fn fails(
    order: PipelineOrder,
    place: (u64, StageKind),
    text: &str,
    run: impl FnOnce(&Rig, &Pipeline) -> Result<(), PipelineError>,
) {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config(order, CHUNK_ITEMS * 4));
    let error = run(&rig, &pipeline).expect_err(text);
    let what = format!("{order:?}, {place:?}: {error}");
    assert_eq!(error.place, Some(place), "{what}");
    let (chunk, stage) = place;
    assert_eq!(error.to_string(), format!("chunk {chunk}, {stage}: {text}"));
    assert!(error.source().is_none(), "{what}: the text says it all");
    works(&rig, &pipeline, &what);
    drop(pipeline);
    rig.assert_clean();
}

/// The pipeline can be used as ever.
#[track_caller]
fn works(rig: &Rig, pipeline: &Pipeline, what: &str) {
    for (from, to) in [(From::Reader, To::Each), (From::Pageable, To::Pageable)] {
        let job = Job {
            from,
            to,
            items: ITEMS,
            width_in: 1,
            width_out: 1,
            seed: 1,
        };
        let ran = job.run::<u32, u32>(rig, pipeline);
        let (_, found, expected) = ran.unwrap_or_else(|error| panic!("{what}, then {error}"));
        assert_eq!(found, expected, "{what}");
    }
}

/// Runs one input into all that takes it.
fn into_nothing(
    rig: &Rig,
    pipeline: &Pipeline,
    input: Input<'_, u32>,
) -> Result<(), PipelineError> {
    let output = Output::each(|_: &[u32]| Ok(()));
    let ran = pipeline.run_in_place(input, output, |stage, data| {
        rig.kernels.add(stage.stream(), 1, data)
    });
    ran.map(drop)
}

/// Runs something into an output.
fn from_something(
    rig: &Rig,
    pipeline: &Pipeline,
    output: Output<'_, u32>,
) -> Result<(), PipelineError> {
    let words = vec![1u32; ITEMS];
    let ran = pipeline.run_in_place(&words, output, |stage, data| {
        rig.kernels.add(stage.stream(), 1, data)
    });
    ran.map(drop)
}

/// Fails once it has given so many bytes.
struct Breaks(usize);

impl Read for Breaks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(broken());
        }
        let bytes = buffer.len().min(self.0);
        buffer[..bytes].fill(1);
        self.0 -= bytes;
        Ok(bytes)
    }
}

/// Fails when it has taken so many bytes, or when it is flushed.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(broken());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(broken())
    }
}

#[test]
fn a_reader() {
    for order in ORDERS {
        for at in AT {
            for part in [0, 1, 30] {
                let bytes = at as usize * CHUNK_ITEMS * 4 + part;
                let place = (at, StageKind::Read);
                fails(order, place, "broken on purpose", |rig, pipeline| {
                    into_nothing(rig, pipeline, Input::reader(Breaks(bytes)))
                });
            }
        }
    }
}

#[test]
fn a_reader_that_ends_inside_an_item() {
    for order in ORDERS {
        for at in AT {
            let place = (at, StageKind::Read);
            let text = "13 bytes are not a whole number of items of 8 bytes";
            fails(order, place, text, |rig, pipeline| {
                let bytes = vec![7; at as usize * CHUNK_ITEMS * 4 + 13];
                let input = Input::<u32>::reader(&bytes[..]).wide(2);
                let output = Output::each(|_: &[u32]| Ok(())).wide(2);
                let ran = pipeline.run_in_place(input, output, |stage, data| {
                    rig.kernels.add(stage.stream(), 1, data)
                });
                ran.map(drop)
            });
        }
    }
}

#[test]
fn code_that_fills() {
    for order in ORDERS {
        for at in AT {
            let place = (at, StageKind::Read);
            let mut chunk = 0;
            fails(order, place, "broken on purpose", |rig, pipeline| {
                let input = Input::fill(|numbers: &mut [u32]| {
                    chunk += 1;
                    numbers.fill(1);
                    match chunk > at {
                        true => Err(broken()),
                        false => Ok(numbers.len()),
                    }
                });
                into_nothing(rig, pipeline, input)
            });
        }
    }
}

#[test]
fn code_that_says_it_filled_more_than_there_was_room() {
    let text = "`fill` returned 11 for a chunk of 10 elements";
    fails(ORDERS[2], (0, StageKind::Read), text, |rig, pipeline| {
        let input = Input::fill(|numbers: &mut [u32]| Ok(numbers.len() + 1));
        into_nothing(rig, pipeline, input)
    });
}

#[test]
fn a_batch_that_is_too_large() {
    for order in ORDERS {
        for at in AT {
            let place = (at, StageKind::Upload);
            let text = "a batch of 44 bytes does not fit a chunk of 40; set a larger chunk";
            fails(order, place, text, |rig, pipeline| {
                let len = |batch| if batch == at { 11 } else { 10 };
                let batches = (0..7).map(|batch| vec![1u32; len(batch)]);
                into_nothing(rig, pipeline, Input::batches(batches))
            });
        }
    }
}

#[test]
fn code_that_launches() {
    for order in ORDERS {
        for at in AT {
            for in_place in [false, true] {
                let place = (at, StageKind::Kernel);
                let text = "source holds 1 elements, target 2";
                let error = || Error::LengthMismatch {
                    source_len: 1,
                    target_len: 2,
                };
                fails(order, place, text, |rig, pipeline| {
                    let words = vec![1u32; ITEMS];
                    let mut results = vec![0u32; ITEMS];
                    let ran = match in_place {
                        true => pipeline.run_in_place(&words, &mut results, |stage, data| {
                            if stage.chunk() == at {
                                return Err(error());
                            }
                            rig.kernels.add(stage.stream(), 1, data)
                        }),
                        false => pipeline.run(&words, &mut results, |stage, input, output| {
                            if stage.chunk() == at {
                                return Err(error());
                            }
                            stage.stream().copy_on_device(input, output)
                        }),
                    };
                    ran.map(drop)
                });
            }
        }
    }
}

#[test]
fn a_writer() {
    for order in ORDERS {
        for at in AT {
            let place = (at, StageKind::Write);
            let room = at as usize * CHUNK_ITEMS * 4;
            must_return(move || {
                fails(order, place, "broken on purpose", |rig, pipeline| {
                    from_something(rig, pipeline, Output::writer(Full(room)))
                });
            });
        }
    }
}

#[test]
fn a_writer_that_cannot_be_flushed() {
    for order in ORDERS {
        let place = (6, StageKind::Write);
        fails(order, place, "broken on purpose", |rig, pipeline| {
            let writer = io::BufWriter::new(Full(ITEMS * 4));
            from_something(rig, pipeline, Output::writer(writer))
        });
    }
}

#[test]
fn code_that_takes() {
    for order in ORDERS {
        for at in AT {
            let place = (at, StageKind::Write);
            must_return(move || {
                let mut chunk = 0;
                fails(order, place, "broken on purpose", |rig, pipeline| {
                    let output = Output::each(|numbers: &[u32]| {
                        assert_eq!(numbers, [2; CHUNK_ITEMS]);
                        chunk += 1;
                        if chunk > at { Err(broken()) } else { Ok(()) }
                    });
                    from_something(rig, pipeline, output)
                });
                assert_eq!(chunk, at + 1, "nothing is taken after a failure");
            });
        }
    }
}

#[test]
fn what_came_before_the_failure_was_handed_on() {
    for order in ORDERS {
        let rig = Rig::new();
        let pipeline = rig.pipeline(config(order, CHUNK_ITEMS * 4));
        let mut seen = Vec::new();
        let output = Output::each(|numbers: &[u32]| {
            seen.extend_from_slice(numbers);
            Ok(())
        });
        let words: Vec<u32> = (0..ITEMS as u32).collect();
        let ran = pipeline.run_in_place(&words, output, |stage, data| match stage.chunk() {
            4 => Err(Error::NotMapped),
            _ => rig.kernels.add(stage.stream(), 1, data),
        });
        assert_eq!(ran.unwrap_err().place, Some((4, StageKind::Kernel)));
        assert!(
            seen.iter().copied().eq(1..=4 * CHUNK_ITEMS as u32),
            "{seen:?}"
        );
        drop(pipeline);
        rig.assert_clean();
    }
}

#[test]
fn a_cause_can_be_matched() {
    let rig = Rig::new();
    let pipeline = rig.pipeline(PipelineConfig::default());
    let ran = into_nothing(&rig, &pipeline, Input::reader(Breaks(0)));
    let cause = ran.unwrap_err().cause;
    assert!(matches!(&cause, Cause::Io(error) if error.kind() == io::ErrorKind::Other));
    let batches = Input::batches([vec![0u32; 5 << 20]]);
    let cause = into_nothing(&rig, &pipeline, batches).unwrap_err().cause;
    assert!(matches!(
        cause,
        Cause::Pinlane(Error::BatchTooLarge {
            batch_bytes: 20_971_520,
            chunk_bytes: 16_777_216
        })
    ));
    drop(pipeline);
    rig.assert_clean();
}
