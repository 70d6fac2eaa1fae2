//! Samples that a function makes, and datasets behind pointers.

use std::sync::Arc;

use pinlane::load::dataset::from_fn;
use pinlane::load::{Dataset, Dtype, Field};

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
