//! Programs that must not compile, each with the reason that the compiler gives.

/// More than the compiler's word is at stake: each case is a promise of the design.
#[test]
#[cfg_attr(miri, ignore = "starts a compiler")]
fn misuse_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile_fail/*.rs");
}
