//! The place of a call as users know it.

use pinlane_boost_files::trace::Frame;

/// Libraries between a program and the driver.
const BETWEEN: [&str; 4] = ["libcuda", "libcudart", "libffi", "_ctypes"];

/// Folders of Python code that is not the user's.
const LIBRARIES: [&str; 4] = [
    "/site-packages/",
    "/dist-packages/",
    "/lib/python",
    "<frozen",
];

/// The innermost line of the user's own code, or the innermost function.
pub(super) fn place(frames: &[Frame]) -> String {
    let is_own = |frame: &&Frame| match frame {
        Frame::Python { file, .. } => !LIBRARIES.iter().any(|part| file.contains(part)),
        Frame::Native { .. } => false,
    };
    let is_python = |frame: &&Frame| matches!(frame, Frame::Python { .. });
    let is_program = |frame: &&Frame| match frame {
        Frame::Python { .. } => false,
        Frame::Native { name, module, .. } => {
            let file = module.rsplit('/').next().filter(|file| !file.is_empty());
            let file = file.unwrap_or(name);
            !BETWEEN.iter().any(|between| file.starts_with(between))
        }
    };
    let find = |wanted: &dyn Fn(&&Frame) -> bool| frames.iter().find(|frame| wanted(frame));
    let best = find(&is_own)
        .or_else(|| find(&is_python))
        .or_else(|| find(&is_program))
        .or(frames.first());
    best.map_or("unknown".to_owned(), text)
}

/// A frame as users write it: `train.py:12 in main`, `copy.c:30 in copy_all`, or `program!copy_all+0x20`.
pub(super) fn text(frame: &Frame) -> String {
    match frame {
        Frame::Python {
            file,
            line,
            function,
        } => format!("{file}:{line} in {function}"),
        Frame::Native { name, .. } => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(file: &str) -> Frame {
        Frame::Python {
            file: file.into(),
            line: 3,
            function: "f".into(),
        }
    }

    #[test]
    fn the_users_own_line_is_shown() {
        let library = python("/venv/lib/python3.11/site-packages/torch/cuda.py");
        let native = Frame::named("libffi.so.8!ffi_call+0x1");
        let frames = [library.clone(), python("train.py"), native.clone()];
        assert_eq!(place(&frames), "train.py:3 in f");
        assert_eq!(
            place(&[library, native]),
            "/venv/lib/python3.11/site-packages/torch/cuda.py:3 in f"
        );
    }

    #[test]
    fn native_code_is_that_of_the_program() {
        let frames = ["libcudart.so.12+0x1", "program!main+0x10"].map(Frame::named);
        assert_eq!(place(&frames), "program!main+0x10");
        assert_eq!(place(&frames[..1]), "libcudart.so.12+0x1");
        assert_eq!(place(&[]), "unknown");
    }
}
