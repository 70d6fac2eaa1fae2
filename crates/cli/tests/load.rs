//! `pinlane load` on simulated devices, as a user sees it.

#[path = "support/scratch.rs"]
mod scratch;
#[path = "support/signals.rs"]
mod signals;
mod support;

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Output};

use scratch::Scratch;
use serde_json::Value;
use signals::{Signal, started_and_listening, stop};
use support::{pinlane, run, stderr, stdout};

/// Files written by the real packages.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../load/tests/data/load");

fn data(name: &str) -> String {
    format!("{DATA}/{name}")
}

/// On the simulated PCIe 3 link.
fn load(args: &[&str]) -> Output {
    run(&[&["--device", "sim:pcie3-x16", "load"], args].concat())
}

fn good(output: &Output) -> &str {
    assert!(output.status.success(), "{}", stderr(output));
    assert_eq!(stderr(output), "");
    stdout(output)
}

fn json(output: &Output) -> Value {
    serde_json::from_str(good(output)).expect("valid JSON")
}

/// Everything but the lines on the host, whose times differ from run to run.
fn without_real_time(text: &str) -> String {
    let (real, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("Host"));
    assert_eq!(real.len(), 2, "{text}");
    assert!(real[0].starts_with("Host, real time: "), "{text}");
    assert!(real[1].contains("through the page cache"), "{text}");
    rest.join("\n") + "\n"
}

/// Expects this status, an empty standard output, and all of `parts` in the message.
#[track_caller]
fn refused(status: i32, args: &[&str], parts: &[&str]) {
    let output = load(args);
    assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    for part in parts {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

/// A sparse file with one tensor of zeros, `f32` with rows of 1024.
fn zeros(scratch: &Scratch, name: &str, rows: u64) -> String {
    named_zeros(scratch, name, "w", rows)
}

fn named_zeros(scratch: &Scratch, name: &str, tensor: &str, rows: u64) -> String {
    let bytes = rows * 4096;
    let header = format!(
        "{{\"{tensor}\":{{\"dtype\":\"F32\",\"shape\":[{rows},1024],\"data_offsets\":[0,{bytes}]}}}}"
    );
    let path = scratch.file(name);
    let mut file = File::create(&path).expect("a file");
    let length = header.len() as u64;
    file.write_all(&length.to_le_bytes()).expect("written");
    file.write_all(header.as_bytes()).expect("written");
    file.set_len(8 + length + bytes).expect("sparse");
    path
}

/// A model of many files needs at most one descriptor per file.
#[test]
fn many_files_need_few_descriptors() {
    let scratch = Scratch::new();
    for number in 0..60 {
        let name = format!("w{number}");
        named_zeros(&scratch, &format!("{name}.safetensors"), &name, 3);
    }
    for io in ["auto", "direct"] {
        let output = Command::new("sh")
            .args(["-c", "ulimit -n 100 && exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_pinlane"))
            .args(["--device", "sim:pcie3-x16", "load", "--io", io])
            .arg(scratch.folder())
            .output()
            .expect("a shell");
        match io {
            "auto" => assert!(good(&output).contains("60 tensors"), "{}", stdout(&output)),
            // Direct reads need two per file.
            _ => {
                assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
                assert!(
                    stderr(&output).contains("Too many open files"),
                    "{}",
                    stderr(&output)
                );
            }
        }
    }
}

/// A device with this much memory, for --device.
fn device_of(scratch: &Scratch, memory_bytes: u64) -> String {
    let text = include_str!("../../model/profiles/pcie3-x16.toml");
    let (before, rest) = text.split_once("memory_bytes = ").expect("a field");
    let (_, behind) = rest.split_once('\n').expect("a line");
    let path = scratch.file("small.toml");
    let text = format!("{before}memory_bytes = {memory_bytes}\n{behind}");
    fs::write(&path, text).expect("written");
    format!("sim:{path}")
}

#[test]
fn pcie3_gives_the_golden_text() {
    let folder = data("sharded");
    let (one, several) = (
        include_str!("golden/load.txt"),
        include_str!("golden/load-repeat.txt"),
    );
    for (args, golden) in [
        (&["--threads", "1"][..], one),
        (&["--threads", "3"], one),
        (&["--repeat", "3"], several),
    ] {
        let more = ["--dtype", "bf16", "--verify", &folder];
        let output = load(&[&more[..], args].concat());
        assert_eq!(without_real_time(good(&output)), golden, "{args:?}");
    }
}

#[test]
fn types_of_torch_and_numpy_are_accepted() {
    let file = data("dtypes.safetensors");
    for (name, to) in [
        ("BF16", "BF16"),
        ("torch.bfloat16", "BF16"),
        ("Half", "F16"),
        ("float", "F32"),
        ("double", "F64"),
    ] {
        let report = json(&load(&["--json", "--dtype", name, &file]));
        assert_eq!(report["conversion"]["to"], to, "{name}");
    }
}

#[test]
fn the_text_says_what_was_compared() {
    let file = data("dtypes.safetensors");
    let plain = load(&["--verify", &file]);
    assert!(good(&plain).contains("read back, all bytes match the files.\n"));
    let converted = load(&["--verify", "--dtype", "f16", &file]);
    let said = good(&converted).replace('\n', " ");
    assert!(said.contains("all bytes match the files after conversion to F16"));
    assert!(!said.contains("all bytes match the files."));
}

#[test]
fn every_fixture_loads_and_is_verified_in_every_type() {
    for name in [
        "dtypes.safetensors",
        "odd.safetensors",
        "six_bits.safetensors",
        "nothing.safetensors",
        "npy",
        "sharded/model.safetensors.index.json",
    ] {
        let file = data(name);
        let listed = json(&load(&["--json", "--list", &file]));
        for dtype in [&[][..], &["--dtype", "f16"], &["--dtype", "f64"]] {
            let args = [&["--json", "--verify", &file][..], dtype].concat();
            let report = json(&load(&args));
            assert_eq!(report["complete"], true, "{name}");
            assert_eq!(report["job"]["bytes"], listed["bytes"], "{name}");
            let tensors = listed["tensors"].as_array().expect("a list").len();
            assert_eq!(report["verify"]["tensors"], tensors, "{name} {dtype:?}");
            assert_eq!(report["verify"]["failure"], Value::Null);
            assert_eq!(report["conversion"].is_null(), dtype.is_empty());
        }
    }
}

#[test]
fn converted_tensors_are_counted() {
    let file = data("dtypes.safetensors");
    let report = json(&load(&["--json", "--dtype", "bf16", &file]));
    let conversion = &report["conversion"];
    assert_eq!(conversion["to"], "BF16");
    // f16, f32 and f64; bf16 itself; integers, small floats, bool and complex.
    let counts = ["converted", "already", "left"].map(|name| conversion[name].clone());
    assert_eq!(counts, [3, 1, 16].map(Value::from));
}

#[test]
fn a_selection_and_a_shard_load_only_their_part() {
    let folder = data("sharded");
    let layers = ["--json", "--select", "model.layers.*", &folder];
    let report = json(&load(&layers));
    let job = &report["job"];
    assert_eq!([&job["tensors"], &job["files"], &job["bytes"]], [2, 1, 64]);
    let both = [&layers[..], &["--select", "lm_*"]].concat();
    assert_eq!(json(&load(&both))["job"]["tensors"], 3);

    // Three rows of ten bytes and four of eight: the rank gets one and two of them.
    let mut bytes = 0;
    for (shard, rank_bytes) in [("0/2", 10 + 2 * 16), ("1/2", 20 + 2 * 16)] {
        let report = json(&load(&["--json", "--verify", "--shard", shard, &folder]));
        assert_eq!(report["job"]["bytes"], rank_bytes, "{shard}");
        assert_eq!(report["job"]["shard"]["world"], 2);
        bytes += rank_bytes;
    }
    assert_eq!(bytes, 94);
}

#[test]
fn a_list_needs_no_device() {
    let output = pinlane(&["load", "--list", "sharded", "npy/vector.npy"])
        .current_dir(DATA)
        .output()
        .expect("pinlane starts");
    let text = "\
name                   dtype  shape   bytes  file
model.layers.0.weight  F32    [4, 2]     32  sharded/model-00001-of-00002.safetensors
model.layers.1.weight  F32    [4, 2]     32  sharded/model-00001-of-00002.safetensors
lm_head.weight         F16    [3, 5]     30  sharded/model-00002-of-00002.safetensors
vector                 I32    [7]        28  npy/vector.npy
4 tensors in 3 files: 122 B
";
    // `auto` would have printed a note on standard error.
    assert_eq!(good(&output), text);
    let args = ["--device", "cuda:99", "--json", "load", "--list"];
    let list = json(&run(&[&args[..], &[&data("odd.safetensors")]].concat()));
    assert_eq!(list["tensors"][2]["name"], "name with space, ü and \n");
}

#[test]
fn a_list_shows_what_types_become() {
    let output = pinlane(&[
        "load",
        "--list",
        "--dtype",
        "f16",
        "sharded",
        "npy/vector.npy",
    ])
    .current_dir(DATA)
    .output()
    .expect("pinlane starts");
    let text = "\
name                   dtype    shape   bytes  file
model.layers.0.weight  F32→F16  [4, 2]     32  sharded/model-00001-of-00002.safetensors
model.layers.1.weight  F32→F16  [4, 2]     32  sharded/model-00001-of-00002.safetensors
lm_head.weight         F16      [3, 5]     30  sharded/model-00002-of-00002.safetensors
vector                 I32      [7]        28  npy/vector.npy
4 tensors in 3 files: 122 B, 90 B after conversion
";
    assert_eq!(good(&output), text);
    // The same number and bytes as a real conversion.
    let file = data("dtypes.safetensors");
    let list = json(&load(&["--json", "--list", "--dtype", "f64", &file]));
    let tensors = list["tensors"].as_array().expect("a list");
    let converted = tensors.iter().filter(|it| !it["converted"].is_null());
    let loaded = json(&load(&["--json", "--dtype", "f64", &file]));
    let count = converted.clone().count();
    assert_eq!(loaded["conversion"]["converted"], count);
    let bytes = |it: &Value| it.as_u64().expect("a number");
    let listed: u64 = tensors
        .iter()
        .map(|it| match it["converted"].is_null() {
            true => bytes(&it["bytes"]),
            false => bytes(&it["converted"]["bytes"]),
        })
        .sum();
    let copied = &loaded["runs"][0]["simulated_copies"]["bytes"];
    assert_eq!(bytes(copied), listed);
}

#[test]
fn the_figures_do_not_depend_on_threads_or_io() {
    let scratch = Scratch::new();
    let file = zeros(&scratch, "zeros.safetensors", 5000);
    for device in ["sim:pcie3-x16", "sim:h200"] {
        let text = |args: &[&str]| {
            let all = [&["--device", device, "load", &file][..], args].concat();
            without_real_time(good(&run(&all)))
        };
        let first = text(&["--threads", "1"]);
        assert!(first.contains("  19.5 MiB  "), "{first}");
        assert_eq!(text(&["--threads", "7"]), first);
        assert_eq!(text(&["--io", "buffered"]), first);
    }
}

/// Ranks that a launcher started on this machine share the page cache.
#[test]
fn local_ranks_come_from_the_launcher() {
    let file = data("dtypes.safetensors");
    let args = [
        "--device",
        "sim:pcie3-x16",
        "--json",
        "load",
        "--verify",
        &file,
    ];
    let report = |variables: &[(&str, &str)], more: &[&str]| {
        let mut command = pinlane(&[&args[..], more].concat());
        json(
            &command
                .envs(variables.iter().copied())
                .output()
                .expect("runs"),
        )
    };
    assert!(report(&[], &[])["runs"][0]["local_rank"].is_null());
    for variables in [
        &[("LOCAL_RANK", "1"), ("LOCAL_WORLD_SIZE", "4")][..],
        &[
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
        ],
        &[("MPI_LOCALRANKID", "1"), ("MPI_LOCALNRANKS", "4")],
        &[
            ("SLURM_STEP_ID", "0"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_NTASKS_PER_NODE", "4"),
        ],
    ] {
        let run = report(variables, &[])["runs"][0].clone();
        let rank = &run["local_rank"];
        assert_eq!((&rank["rank"], &rank["world"]), (&1.into(), &4.into()));
        assert_eq!(rank["sharing"], "page_cache", "{variables:?}");
        assert_eq!(run["host"]["direct_bytes"], 0);
        let rows = report(variables, &["--shard", "1/4"]);
        assert_eq!(rows["runs"][0]["local_rank"]["sharing"], "own_rows");
    }
}

#[test]
fn each_run_reuses_the_memory_of_the_previous_one() {
    let scratch = Scratch::new();
    // Enough memory for one load, but not for two.
    let device = device_of(&scratch, 12 << 20);
    let file = zeros(&scratch, "zeros.safetensors", 2048);
    let args = ["--device", &device, "--json", "load", &file];
    let report = json(&run(&[&args[..], &["--repeat", "4"]].concat()));
    assert_eq!(report["runs"][3]["host"]["threads"], 1);
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(4));
    assert_eq!(report["memory"]["device_bytes"], 8 << 20);
}

#[test]
fn out_of_memory_says_what_is_missing_and_what_helps() {
    let scratch = Scratch::new();
    let device = device_of(&scratch, 12 << 20);
    let file = zeros(&scratch, "zeros.safetensors", 4096);
    let output = run(&["--device", &device, "load", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    for part in [
        &file[..],
        "out of memory",
        "take 16 MiB of device memory",
        "12 MiB",
        "--select",
        "--shard",
    ] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    let half = run(&["--device", &device, "load", &file, "--dtype", "bf16"]);
    assert!(good(&half).contains("Memory: 8 MiB on the device."));
    // The first of two allocations fits, and must not count as in use.
    let device = device_of(&scratch, 1 << 30);
    let rows = (900 << 20) / 4096;
    let files = ["a", "b"].map(|name| named_zeros(&scratch, &format!("{name}.st"), name, rows));
    let output = run(&["--device", &device, "load", &files[0], &files[1]]);
    assert_eq!(output.status.code(), Some(1));
    let free = "take 1.76 GiB of device memory, but 1 GiB of 1 GiB are free";
    assert!(stderr(&output).contains(free), "{}", stderr(&output));
}

#[test]
fn invalid_arguments_name_the_flag_or_file_and_the_remedy() {
    let scratch = Scratch::new();
    let (folder, small) = (data("sharded"), data("six_bits.safetensors"));
    let prose = scratch.file("prose.safetensors");
    fs::write(&prose, "This is no file of tensors.").expect("written");
    let empty = scratch.file("empty.npy");
    fs::write(&empty, "").expect("written");
    let bare = scratch.file("bare");
    fs::create_dir(&bare).expect("a folder");
    let whole = data("sharded/model-00002-of-00002.safetensors");
    let copy = scratch.file("copy.safetensors");
    fs::copy(&whole, &copy).expect("copied");
    let lost = scratch.file("lost.safetensors");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n";
    fs::write(&lost, pointer).expect("written");
    let torch = scratch.file("torch");
    fs::create_dir(&torch).expect("a folder");
    let magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46";
    fs::write(scratch.file("torch/model.bin"), magic).expect("written");
    for (args, parts) in [
        (&[][..], &["FILES"][..]),
        (&["/no/such"], &["/no/such", "name a .safetensors"]),
        (&["/dev/null"], &["/dev/null", "name a .safetensors"]),
        (&[&prose], &[&prose, "name a .safetensors"]),
        (&[&empty], &[&empty, "is empty"]),
        (&[&bare], &[&bare, "name a .safetensors"]),
        (
            &[&folder, &folder],
            &["model-00001", "twice", "name it once"],
        ),
        (
            &[&folder, &whole],
            &["model-00002", "twice", "name it once"],
        ),
        (&[&folder, &copy], &["lm_head.weight", "name the files"]),
        (&[&lost], &[&lost, "Git LFS", "git lfs pull"]),
        (&[&torch], &["model.bin in it is", "save_file"]),
        (&[&folder, "--select", "x*"], &["--select", "x*", "--list"]),
        (&[&folder, "--select", "[a"], &["--select", "[ has no ]"]),
        (&[&folder, "--dtype", "i8"], &["--dtype", "bf16"]),
        (&[&folder, "--io", "fast"], &["--io", "direct"]),
        (
            &[&folder, "--threads", "0"],
            &["--threads", "from 1 to 256"],
        ),
        (
            &[&folder, "--threads", "-1"],
            &["--threads", "from 1 to 256"],
        ),
        (&[&folder, "--repeat", "0"], &["--repeat"]),
        (&[&folder, "--shard", "3/2"], &["--shard", "no rank 3"]),
        (&[&folder, "--shard", "3"], &["--shard", "such as 0/8"]),
        (&[&folder, "--shard", "half"], &["--shard", "0/8"]),
        (&[&small, "--shard", "0/3"], &["--shard 0/3", "--select"]),
        (&[&folder, "--list", "--verify"], &["--list", "--verify"]),
    ] {
        refused(2, args, parts);
    }
}

#[test]
fn a_damaged_file_is_a_usage_error() {
    let scratch = Scratch::new();
    let file = zeros(&scratch, "cut.safetensors", 16);
    let whole = fs::metadata(&file).expect("there").len();
    let cut = File::options().write(true).open(&file).expect("there");
    cut.set_len(whole - 1).expect("cut");
    refused(
        2,
        &[&file],
        &[
            &file,
            "tensor \"w\"",
            "65535 bytes of data",
            "download it again",
        ],
    );
    // A header that claims to be longer than the file.
    let header = scratch.file("header.safetensors");
    fs::write(&header, [&64u64.to_le_bytes()[..], b"{\"w\":"].concat()).expect("written");
    refused(2, &[&header], &[&header, "download it again"]);
    refused(2, &[&data("refused/fortran.npy")], &["ascontiguousarray"]);
    let closed = scratch.file("index.json");
    fs::write(&closed, r#"{"weight_map":{"w":"lost.safetensors"}}"#).expect("written");
    refused(2, &[&closed], &["lost.safetensors", "does not exist"]);
    let output = run(&["--help"]);
    assert!(stdout(&output).contains("2 invalid arguments, or an input file"));
}

#[test]
fn too_little_pinned_memory_names_the_variable() {
    let output = pinlane(&["--device", "sim", "load", &data("sharded")])
        .env("PINLANE_PINNED_LIMIT", "8KiB")
        .output()
        .expect("pinlane starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("PINLANE_PINNED_LIMIT"));
}

#[test]
fn a_file_that_disappears_later_fails_the_job() {
    let scratch = Scratch::new();
    let file = zeros(&scratch, "zeros.safetensors", 16 << 10);
    // 64 MiB each time: far more than it can load before the signal.
    let args = ["--device", "sim", "load", "--repeat", "1000", &file];
    // It has read the headers by then.
    let child = started_and_listening(&mut pinlane(&args), Signal::Interrupt);
    fs::remove_file(&file).expect("there");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains(&file), "{}", stderr(&output));
    // The same error while opening.
    refused(2, &[&file], &[&file]);
}

#[test]
fn an_interrupt_prints_the_results_so_far() {
    let scratch = Scratch::new();
    let file = zeros(&scratch, "zeros.safetensors", 16 << 10);
    // 64 MiB each time: far more than it can load before the signal.
    let args = ["--device", "sim", "--json", "load", "--repeat", "1000"];
    let args = [&args[..], &["--verify", &file]].concat();
    let child = started_and_listening(&mut pinlane(&args), Signal::Interrupt);
    let output = stop(child, Signal::Interrupt);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = "pinlane: interrupted before the end\n";
    assert_eq!(stderr(&output), said);
    let report: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    assert_eq!(report["complete"], false);
    assert!(report["runs"].as_array().expect("a list").len() < 1000);
    assert_eq!(report["job"]["repeat"], 1000);
    assert_eq!(report["job"]["verify"], true);
    assert_eq!(report["verify"], Value::Null);
}
