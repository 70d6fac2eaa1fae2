//! Every numbered example runs on a simulated GPU, and says so.

use std::fs;

use pinlane_testing::run_example;

#[test]
fn numbered_examples_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("the folder of the examples")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 11, "{names:?}");
    for name in names {
        let output = run_example(&name);
        assert!(
            output.contains("Simulated GPU"),
            "{name} printed:\n{output}"
        );
    }
}
