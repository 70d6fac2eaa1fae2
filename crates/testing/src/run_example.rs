//! Running the facade's examples.

use std::process::Command;

/// Builds and runs an example of `pinlane`, and returns what it prints. Fails if the example does.
#[track_caller]
pub fn run_example(name: &str) -> String {
    let args = "run --quiet --offline --package pinlane --features record,sim --example";
    let output = Command::new(env!("CARGO"))
        .args(args.split(' '))
        .arg(name)
        .output()
        .expect("cargo runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}
