//! What made a report: the version, the date, the driver and the machine.

use std::thread;

use pinlane_driver::DeviceInfo;
use pinlane_report::Environment;

use crate::system::nvml::Management;
use crate::system::{self, SystemRoot};

/// The environment of a command that started at `date` and runs on this device.
pub(crate) fn gather(date: &str, device: Option<&DeviceInfo>) -> Environment {
    let environment = Environment {
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        date: Some(date.to_owned()),
        driver: device.map(driver),
        gpu: device.map(|info| info.name.clone()),
        ..Environment::default()
    };
    of_machine(SystemRoot::real(), environment)
}

fn driver(info: &DeviceInfo) -> String {
    if let Some(profile) = &info.simulated {
        return format!("simulator, profile {profile}");
    }
    let management = Management::open().ok();
    let release = management.and_then(|library| library.driver_version());
    let release = release.map_or_else(String::new, |release| format!(" (NVIDIA {release})"));
    format!("CUDA {}{release}", info.driver_version)
}

/// Adds what the files of the kernel say about the machine.
fn of_machine(root: SystemRoot<'_>, environment: Environment) -> Environment {
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    // On x86; on other processors there is only the architecture.
    let model = system::field(&cpuinfo, "model name");
    let distribution = root.text("etc/os-release");
    let distribution = distribution.as_deref().and_then(pretty_name);
    let kernel = root.text("proc/sys/kernel/osrelease");
    let kernel = kernel.map(|release| format!("{} {release}", system_name()));
    let system: Vec<String> = distribution.into_iter().chain(kernel).collect();
    Environment {
        cpu: Some(model.unwrap_or(std::env::consts::ARCH).to_owned()),
        cpus: thread::available_parallelism()
            .ok()
            .map(|cpus| cpus.get() as u64),
        system: Some(match system.is_empty() {
            true => system_name().to_owned(),
            false => system.join(", "),
        }),
        ..environment
    }
}

fn system_name() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        other => other,
    }
}

/// The name of the distribution in `os-release`.
fn pretty_name(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let name = lines.find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let name = name.trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_machine_is_named_by_its_files() {
        let scratch = Scratch::new();
        let root = scratch.folder();
        for (file, text) in [
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: AMD EPYC 9654\n\nprocessor\t: 1\nmodel name\t: other\n",
            ),
            (
                "etc/os-release",
                "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
            ),
            ("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n"),
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        let found = of_machine(SystemRoot(root), Environment::default());
        assert_eq!(found.cpu.as_deref(), Some("AMD EPYC 9654"));
        let system = "Debian GNU/Linux 12 (bookworm), Linux 6.1.0-28-amd64";
        assert_eq!(found.system.as_deref(), Some(system));
        assert!(found.cpus.is_some_and(|cpus| cpus > 0));
    }

    #[test]
    fn a_machine_without_files_has_its_architecture() {
        let scratch = Scratch::new();
        let found = of_machine(SystemRoot(scratch.folder()), Environment::default());
        assert_eq!(found.cpu.as_deref(), Some(std::env::consts::ARCH));
        assert!(found.system.is_some());
    }

    #[test]
    fn drivers_have_their_version() {
        let mut info = DeviceInfo::new(0, "GPU");
        assert!(driver(&info).starts_with("CUDA "));
        info.simulated = Some("h200".to_owned());
        assert_eq!(driver(&info), "simulator, profile h200");
    }
}
