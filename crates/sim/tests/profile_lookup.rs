//! Machines by the names of their profiles.

use pinlane_driver::Platform;
use pinlane_model::Profile;
use pinlane_sim::{ProfileNameError, Sim};

#[test]
fn every_built_in_profile_makes_a_machine() {
    for name in Profile::builtin_names() {
        let info = Sim::named(name).unwrap().devices().unwrap().remove(0);
        assert_eq!(info.simulated.as_deref(), Some(name));
    }
}

#[test]
fn a_path_makes_a_machine_of_the_profile_in_the_file() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../model/profiles/h200.toml");
    let sim = Sim::builder().profile_named(path).unwrap().seed(1).build();
    assert_eq!(sim.driver().info().simulated.as_deref(), Some("h200"));
}

#[test]
fn errors_say_what_is_wrong_and_list_the_built_in_names() {
    let error = Sim::named("h300").unwrap_err();
    assert!(matches!(error, ProfileNameError::NotFound { .. }));
    let text = error.to_string();
    assert!(
        text.contains("`h300`") && text.contains("pcie3-x16, "),
        "{text}"
    );
    let error = Sim::named(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap_err();
    assert!(matches!(error, ProfileNameError::Invalid { .. }));
    let text = error.to_string();
    assert!(
        text.contains("Cargo.toml") && text.contains("`dependencies`"),
        "{text}"
    );
    let error = Sim::named("/dev/zero").unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
    assert!(Sim::named(env!("CARGO_MANIFEST_DIR")).is_err(), "a folder");
}
