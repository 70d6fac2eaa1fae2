//! Samples computed by functions, and pointers to datasets.

use std::sync::Arc;

use pinlane::load::dataset::from_fn;
use pinlane::load::{Dataset, Dtype, Field, SampleError, SampleMut};

use super::support::{read, sample};

fn words() -> impl Dataset {
    let fields = [
        Field::fixed("length", Dtype::U8, []),
        Field::variable("text", Dtype::U8, 5),
    ];
    from_fn(7, fields, |index, sample| {
        sample.fixed(0)[0] = u8::try_from(index)?;
        sample.variable(1, index)?.fill(b'a');
        Ok(())
    })
}

#[test]
fn a_function_writes_samples() {
    let words = words();
    assert_eq!((words.len(), words.fields().len()), (7, 2));
    assert_eq!(sample(&words, 0), [vec![0], vec![]]);
    assert_eq!(sample(&words, 3), [vec![3], b"aaa".to_vec()]);
    let error = read(&words, 6).expect_err("too long");
    assert!(error.to_string().contains("the limit is 5"), "{error}");
    assert_eq!(words.origin(6), "sample 6");
}

#[test]
fn pointers_to_datasets_are_datasets() {
    let shared: Arc<dyn Dataset> = Arc::new(words());
    let boxed: Box<dyn Dataset> = Box::new(shared.clone());
    let mapped = boxed.map(
        [Field::fixed("first", Dtype::U8, [])],
        |_, input, output| {
            output.fixed(0)[0] = *input.field(1).first().ok_or("an empty text")?;
            Ok(())
        },
    );
    assert_eq!((mapped.len(), mapped.is_empty()), (7, false));
    assert_eq!(sample(&mapped, 2), [[b'a']]);
    assert_eq!(
        read(&mapped, 0).expect_err("nothing").to_string(),
        "an empty text"
    );
    assert_eq!(shared.origin(1), "sample 1");
}

#[test]
fn typed_values_are_checked() {
    let fields = [
        Field::fixed("pair", Dtype::I32, [2]),
        Field::variable("numbers", Dtype::F64, 3),
    ];
    type Write = fn(&mut SampleMut<'_>) -> Result<(), SampleError>;
    let write = |write: Write| {
        read(
            &from_fn(1, fields.clone(), move |_, sample| write(sample)),
            0,
        )
    };
    let good = write(|sample| {
        sample.write("numbers", &[0.5_f64])?;
        sample.write("pair", &[1_i32, -1])
    });
    let pair = [1_i32, -1].map(i32::to_le_bytes).concat();
    assert_eq!(
        good.expect("both are written"),
        [pair, 0.5_f64.to_le_bytes().to_vec()]
    );
    let bad: [(Write, &str); 4] = [
        (
            |sample| sample.write("pairs", &[0_i32; 2]),
            "the sample has no field `pairs`",
        ),
        (
            |sample| sample.write("pair", &[0_i64]),
            "field `pair` holds I32, not elements of 8 bytes",
        ),
        (
            |sample| sample.write("pair", &[0_i32]),
            "field `pair` takes 2 elements, not 1",
        ),
        (
            |sample| sample.write("numbers", &[0_f64; 4]),
            "field `numbers` has 32 bytes; the limit is 24",
        ),
    ];
    for (wrong, text) in bad {
        assert_eq!(write(wrong).expect_err(text).to_string(), text);
    }
}

#[test]
fn typed_values_are_read() {
    let field = || [Field::fixed("n", Dtype::U32, [2])];
    let numbers = from_fn(3, field(), |index, sample| {
        sample.write("n", &[index as u32, 7])
    });
    let swapped = numbers.map(field(), |_, input, output| {
        assert!(input.values::<u64>("n").is_err() && input.values::<u32>("m").is_err());
        let &[first, second] = input.values::<u32>("n")? else {
            return Err("not a pair".into());
        };
        output.write("n", &[second, first])
    });
    assert_eq!(
        sample(&swapped, 2),
        [[7_u32, 2].map(u32::to_le_bytes).concat()]
    );
}
