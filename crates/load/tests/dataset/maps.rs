//! Samples transformed by a function.

use std::thread;

use pinlane::load::dataset::from_fn;
use pinlane::load::{Arrays, Dataset, Dtype, Field, SampleMut, SampleRef};

use super::allocation_counter::allocations;
use super::support::{data, read, sample};

/// Sample `i` has a text of `i` letters, after a field of odd size.
fn texts() -> impl Dataset {
    let fields = [
        Field::fixed("odd", Dtype::U8, [3]),
        Field::variable("text", Dtype::U8, 40),
        Field::fixed("number", Dtype::U32, []),
    ];
    from_fn(30, fields, |index, sample| {
        sample.fixed(0).fill(1);
        let letter = b'a' + u8::try_from(index % 26)?;
        sample.variable(1, index)?.fill(letter);
        sample
            .fixed(2)
            .copy_from_slice(&u32::try_from(index)?.to_ne_bytes());
        Ok(())
    })
}

#[test]
fn a_map_reads_one_sample_and_writes_another() {
    let fields = [
        Field::variable("upper", Dtype::U8, 40),
        Field::fixed("twice", Dtype::U32, []),
    ];
    let upper = texts().map(fields, |index, input, output| {
        assert_eq!(input.fields(), 3);
        let text = input.field(1);
        output
            .variable(0, text.len())?
            .copy_from_slice(&text.to_ascii_uppercase());
        let [number] = bytemuck::cast_slice::<u8, u32>(input.field(2)) else {
            return Err("not one number".into());
        };
        assert_eq!(index, *number as usize);
        output.fixed(1).copy_from_slice(&(2 * number).to_ne_bytes());
        Ok(())
    });
    assert_eq!((upper.len(), upper.fields().len()), (30, 2));
    for index in [29, 0, 7] {
        let letter = b'A' + (index % 26) as u8;
        let twice = (2 * index as u32).to_ne_bytes();
        assert_eq!(sample(&upper, index), [vec![letter; index], twice.to_vec()]);
    }
}

#[test]
fn fields_are_aligned_for_any_element_type() {
    let checked = texts().map([Field::fixed("none", Dtype::U8, [0])], |_, input, _| {
        for field in 0..input.fields() {
            assert!(input.field(field).as_ptr().addr().is_multiple_of(16));
        }
        Ok(())
    });
    assert_eq!(sample(&checked, 5), [[0_u8; 0]]);
}

#[test]
fn maps_of_maps() {
    let add = |number: u8| {
        move |_: usize, input: SampleRef<'_>, output: &mut SampleMut<'_>| {
            output.fixed(0)[0] = input.field(0)[0] + number;
            Ok(())
        }
    };
    let field = || [Field::fixed("n", Dtype::U8, [])];
    let numbers = Arrays::from_memory(3, [(field()[0].clone(), vec![1_u8, 2, 3])]).expect("good");
    let mapped = numbers.map(field(), add(10)).map(field(), add(100));
    assert_eq!(sample(&mapped, 2), [[113]]);
    assert_eq!(mapped.inner().inner().len(), 3);
}

#[test]
fn errors_and_origins_pass_through_a_map() {
    let fields = || [Field::fixed("n", Dtype::U8, [])];
    let same = |_: usize, input: SampleRef<'_>, output: &mut SampleMut<'_>| {
        output.fixed(0).copy_from_slice(input.field(0));
        Ok(())
    };
    let failing = from_fn(2, fields(), |index, sample| match index {
        0 => Err("the first is bad".into()),
        _ => {
            sample.fixed(0)[0] = 5;
            Ok(())
        }
    });
    let mapped = failing.map(fields(), same);
    assert_eq!(
        read(&mapped, 0).expect_err("bad").to_string(),
        "the first is bad"
    );
    assert_eq!(sample(&mapped, 1), [[5]]); // what is behind it is not concerned

    let forgetful = from_fn(1, [Field::variable("text", Dtype::U8, 4)], |_, _| Ok(()));
    let mapped = forgetful.map(fields(), same);
    let error = read(&mapped, 0)
        .expect_err("nothing is written")
        .to_string();
    assert_eq!(error, "field `text` was not written");

    let forgetful = from_fn(1, fields(), |_, _| Ok(()));
    let mapped = forgetful.map(fields(), same);
    let error = read(&mapped, 0).expect_err("nothing is written");
    assert_eq!(error.to_string(), "field `n` was not written");

    let endless = from_fn(1, [Field::fixed("x", Dtype::F64, [usize::MAX])], |_, _| {
        Ok(())
    });
    assert!(read(&endless.map(fields(), same), 0).is_err());

    let arrays = Arrays::open(data().join("npy/label.npy")).expect("a good file");
    let source = arrays.origin(4);
    assert_eq!(arrays.map(fields(), same).origin(4), source);
}

/// Memory outside the given sample is never exposed.
#[test]
fn a_source_that_replaces_the_sample_is_an_error() {
    for bytes in [1, 4, 5000] {
        let source = from_fn(
            1,
            [Field::variable("text", Dtype::U8, 4)],
            move |_, sample| {
                let field = Box::leak(Box::new(Field::variable("text", Dtype::U8, 4)));
                let mut other = SampleMut::new();
                other.push(field, Box::leak(vec![7; bytes].into()));
                other.variable(0, bytes)?;
                *sample = other;
                Ok(())
            },
        );
        let mapped = source.map([Field::fixed("n", Dtype::U8, [])], |_, input, output| {
            output.fixed(0)[0] = input.field(0)[0];
            Ok(())
        });
        let error = read(&mapped, 0).expect_err("it is another sample");
        let text = "the dataset replaced the sample it was given by another one";
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn a_panic_affects_only_its_sample() {
    let fields = || [Field::fixed("n", Dtype::U8, [])];
    let mapped = texts().map(fields(), |index, _, output| {
        assert_ne!(index, 3, "three is bad");
        output.fixed(0)[0] = 1;
        Ok(())
    });
    let bad = thread::scope(|scope| scope.spawn(|| sample(&mapped, 3)).join());
    assert!(bad.is_err());
    assert_eq!(sample(&mapped, 4), [[1]]);
}

#[test]
fn threads_do_not_share_buffers() {
    let fields = [Field::variable("text", Dtype::U8, 40)];
    let copied = texts().map(fields, |_, input, output| {
        let text = input.field(1);
        thread::yield_now();
        output.variable(0, text.len())?.copy_from_slice(text);
        Ok(())
    });
    thread::scope(|scope| {
        for start in 0..4 {
            let copied = &copied;
            scope.spawn(move || {
                for index in (0..2_000).map(|turn| (start + turn * 7) % 30) {
                    let letter = b'a' + (index % 26) as u8;
                    assert_eq!(sample(copied, index), [vec![letter; index]]);
                }
            });
        }
    });
}

#[test]
fn warm_maps_allocate_nothing() {
    let text = || [Field::variable("text", Dtype::U8, 40)];
    let copy = |field: usize| {
        move |_: usize, input: SampleRef<'_>, output: &mut SampleMut<'_>| {
            let text = input.field(field);
            output.variable(0, text.len())?.copy_from_slice(text);
            Ok(())
        }
    };
    let mapped = texts().map(text(), copy(1)).map(text(), copy(0));
    let mut room = [0; 40];
    let mut place = SampleMut::new();
    place.push(&mapped.fields()[0], &mut room);
    mapped.read(29, &mut place).expect("a good sample");
    let (all, times) = allocations(|| (0..30).try_for_each(|at| mapped.read(at, &mut place)));
    all.expect("good samples");
    assert_eq!(times, 0);
}

#[test]
fn recycling_a_sample_allocates_nothing() {
    let mut first = [1_u8, 2];
    let fixed = Field::fixed("fixed", Dtype::U8, [2]);
    let variable = Field::variable("variable", Dtype::U8, 4);
    let mut place = SampleMut::new();
    place.push(&fixed, &mut first);
    place.push(&fixed, &mut []);
    let place = place.recycled();
    let mut second = [3_u8; 4];
    let (mut place, times) = allocations(|| {
        let mut place = place.recycled();
        place.push(&variable, &mut second);
        place
    });
    assert_eq!(times, 0);
    assert_eq!(place.variable(0, 3).expect("there is room"), [3; 3]);
    assert_eq!((place.written(0), place.written(1)), (Some(3), None));
}
