//! However a program finds libcuda, its copies go through the library, and it notices nothing.

mod support;

use support::{FindBy, Program, text_of};

/// What `every_copy` boosts: 23 rounds of the two sizes that are large enough.
const EVERY_COPY: (u64, u64) = (46, 46);

fn every_copy_is_boosted(find_by: FindBy) {
    let program = Program::found_by("every_copy", find_by);
    assert_eq!(text_of(&program.plain()), "every byte right\n");
    let run = program.boosted();
    assert_eq!(run.stdout(), "every byte right\n");
    assert_eq!(run.boosted_copies(), EVERY_COPY);
    assert_eq!(run.counters.copies_seen(), 230);
    run.assert_clean();
}

#[test]
fn by_dlsym() {
    every_copy_is_boosted(FindBy::Dlsym);
}

#[test]
fn by_an_absolute_path() {
    every_copy_is_boosted(FindBy::Path);
}

#[test]
fn by_cu_get_proc_address() {
    every_copy_is_boosted(FindBy::ProcAddress);
}

#[test]
fn by_the_linker() {
    every_copy_is_boosted(FindBy::Linked);
}

#[test]
fn beside_another_preloaded_library() {
    let program =
        Program::found_by("every_copy", FindBy::Linked).with_interposer("other_interposer");
    let run = program.boosted();
    assert_eq!(run.stdout(), "every byte right\n");
    assert_eq!(run.boosted_copies(), EVERY_COPY);
    // The three small sizes are the driver's, and the other library is in front of it.
    let stderr = String::from_utf8_lossy(&run.output.stderr).into_owned();
    assert!(stderr.contains("other: 3 copies"), "{stderr}");
}

#[test]
fn turned_off() {
    let program = Program::new("every_copy").variable("PINLANE_BOOST", "0");
    let run = program.boosted();
    assert_eq!(run.stdout(), "every byte right\n");
    assert_eq!(run.boosted_copies(), (0, 0));
    assert_eq!(run.counters.copies_seen(), 230);
}

#[test]
fn behind_a_library_that_looks_into_libcuda_itself() {
    let program =
        Program::found_by("every_copy", FindBy::Linked).with_interposer("lazy_interposer");
    let run = program.boosted();
    assert_eq!(run.stdout(), "every byte right\n");
    assert_eq!(run.boosted_copies(), EVERY_COPY);
}

#[test]
fn programs_find_no_cuda_where_there_is_none() {
    let program = Program::new("no_driver");
    assert_eq!(text_of(&program.plain()), "(nil) (nil)\n");
    assert_eq!(program.boosted().stdout(), "(nil) (nil)\n");
}
