//! Where the compiler is searched.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Path of libnvrtc, or a folder that contains it. Nothing else is tried if it is set.
pub(crate) const VARIABLE: &str = "PINLANE_NVRTC";

/// Names by which the system's loader finds it, newest first. It also finds a library by these names that
/// the process has loaded already, such as PyTorch's.
pub(crate) const NAMES: [&str; 4] = [
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.11.2",
    "libnvrtc.so",
];

/// Folders of a CUDA toolkit.
const TOOLKIT_FOLDERS: [&str; 2] = ["lib64", "targets/x86_64-linux/lib"];

/// Folders of NVIDIA's packages in `site-packages`, of CUDA 13 and 12.
const PACKAGE_FOLDERS: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"];

/// Files that exist and look like the compiler, best first.
pub(crate) fn files(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name: &str| variable(name).map(PathBuf::from);
    let mut folders = Vec::new();
    for environment in ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(folder)
    {
        for packages in site_packages(&environment) {
            folders.extend(PACKAGE_FOLDERS.map(|folder| packages.join(folder)));
        }
        folders.push(environment.join("lib"));
    }
    let usual = Some(PathBuf::from("/usr/local/cuda"));
    let toolkits = ["CUDA_PATH", "CUDA_HOME"].into_iter().map(folder);
    for toolkit in toolkits.chain([usual]).flatten() {
        folders.extend(TOOLKIT_FOLDERS.map(|folder| toolkit.join(folder)));
    }
    folders
        .iter()
        .flat_map(|folder| in_folder(folder))
        .collect()
}

/// The file that a path means: itself, or the compiler inside of a folder.
pub(crate) fn in_path(path: &Path) -> Vec<PathBuf> {
    match path.is_dir() {
        true => in_folder(path),
        false => vec![path.to_owned()],
    }
}

fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let paths = NAMES.map(|name| folder.join(name)).into_iter();
    paths.filter(|path| path.is_file()).take(1).collect()
}

/// `lib/python3.*/site-packages` of an environment.
fn site_packages(environment: &Path) -> Vec<PathBuf> {
    let Ok(entries) = environment.join("lib").read_dir() else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let pythons = names.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("python3"))
    });
    let mut packages: Vec<_> = pythons.map(|path| path.join("site-packages")).collect();
    packages.sort();
    packages
}

/// Libraries beside the compiler that it opens by name, and that the system's loader would not find.
pub(crate) fn builtins_beside(compiler: &Path) -> Vec<PathBuf> {
    let entries = compiler.parent().and_then(|folder| folder.read_dir().ok());
    let paths = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let mut builtins: Vec<_> = paths
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("libnvrtc-builtins.so"))
        })
        .collect();
    builtins.sort();
    builtins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, "").expect("written");
    }

    #[test]
    fn environments_come_before_toolkits_and_new_versions_before_old_ones() {
        let root = std::env::temp_dir().join(format!("pinlane-nvrtc-{}", std::process::id()));
        let venv = root.join("venv/lib/python3.12/site-packages/nvidia");
        let toolkit = root.join("cuda/lib64");
        touch(&venv.join("cuda_nvrtc/lib/libnvrtc.so.12"));
        touch(&venv.join("cu13/lib/libnvrtc.so.13"));
        touch(&venv.join("cu13/lib/libnvrtc-builtins.so.13.0"));
        touch(&toolkit.join("libnvrtc.so"));
        touch(&toolkit.join("libnvrtc.so.12"));
        let found = files(|name| match name {
            "VIRTUAL_ENV" => Some(root.join("venv").into()),
            "CUDA_HOME" => Some(root.join("cuda").into()),
            _ => None,
        });
        let found: Vec<_> = found
            .iter()
            .filter_map(|path| path.strip_prefix(&root).ok())
            .map(|path| path.to_str().expect("plain names"))
            .collect();
        let packages = "venv/lib/python3.12/site-packages/nvidia";
        assert_eq!(
            found,
            [
                &format!("{packages}/cu13/lib/libnvrtc.so.13"),
                &format!("{packages}/cuda_nvrtc/lib/libnvrtc.so.12"),
                "cuda/lib64/libnvrtc.so.12",
            ]
        );
        let builtins = builtins_beside(&venv.join("cu13/lib/libnvrtc.so.13"));
        assert_eq!(builtins, [venv.join("cu13/lib/libnvrtc-builtins.so.13.0")]);
        assert_eq!(in_path(&toolkit), [toolkit.join("libnvrtc.so.12")]);
        std::fs::remove_dir_all(&root).expect("removed");
    }
}
