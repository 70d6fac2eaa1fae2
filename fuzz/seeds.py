#!/usr/bin/env python3
"""Writes the first inputs of every corpus: files that the real programs wrote, and texts that users write.

    cargo build -p pinlane-cli && fuzz/seeds.py

Tensor files come from the tests of crates/load (written by safetensors and numpy), archives from GNU tar and
Python's tarfile, reports from `pinlane bench`, profiles from `pinlane calibrate` and crates/model/profiles.
"""

import io
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

FUZZ = pathlib.Path(__file__).resolve().parent
ROOT = FUZZ.parent
DATA = ROOT / "crates/load/tests/data"
PINLANE = ROOT / "target/debug/pinlane"


def write(target, name, content):
    folder = FUZZ / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    content = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(content)


def copy(target, *patterns):
    for pattern in patterns:
        for path in sorted(DATA.glob(pattern)):
            write(target, path.name, path.read_bytes())


def texts(target, lines):
    for number, text in enumerate(lines):
        write(target, f"text-{number:02}", text)


def safetensors(name, entry):
    header = f'{{"w":{entry}}}'.encode()
    write("safetensors", f"{name}.safetensors", len(header).to_bytes(8, "little") + header + b"x")


def differences():
    """Files on which Pinlane and the reference implementation are known to differ."""
    entry = '{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":0}'
    safetensors("many-dims", entry.replace("[1]", str([1] * 65)))
    safetensors("list", '["U8",[1],[0,1]]')
    safetensors("dtype-object", entry.replace('"U8"', '{"U8":null}'))
    safetensors("deep", entry.replace('"more":0', '"more":' + "[" * 200 + "]" * 200))
    safetensors("large-number", entry.replace('"more":0', '"more":1e999'))
    safetensors("surrogate", entry.replace('"more":0', '"more":"\\ud800"'))


def without_padding(archive):
    """The archive with one block of zeros at its end instead of several."""
    end = len(archive.rstrip(b"\0"))
    return archive[: -(-end // 512) * 512] + bytes(512)


def oldest(files):
    """An archive in the oldest format, which no program writes any more."""
    archive = b""
    for name, content in files:
        header = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT))
        header[124:136] = b"%011o\0" % len(content)
        header[257:] = bytes(255)
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        archive += header + content + bytes(-len(content) % 512)
    return archive + bytes(512)


def archives():
    long_name = "folder/" + "long" * 20 + "/" + "name" * 5
    files = {
        "a/1.jpg": b"pixels",
        "a/1.cls": b"7",
        f"{long_name}.jpg": b"",
        f"{long_name}.cls": b"8",
    }
    formats = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
    for name, number in formats.items():
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=number) as tar:
            for path, content in files.items():
                info = tarfile.TarInfo(path)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        write("tar", f"python-{name}.tar", without_padding(buffer.getvalue()))
    write("tar", "oldest.tar", oldest([("1.jpg", b"pixels"), ("1.cls", b"7"), ("2.jpg", b""), ("2.CLS", b"8")]))
    with tempfile.TemporaryDirectory() as folder:
        for path, content in files.items():
            path = pathlib.Path(folder, path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        pathlib.Path(folder, "a/link.cls").symlink_to("1.cls")
        for name in ["gnu", "pax", "ustar", "v7"]:
            paths = ["a"] if name == "v7" else ["a", "folder"]
            command = ["tar", f"--format={name}", "--sort=name", "--mtime=@0", "--owner=0", "--group=0"]
            command += ["--pax-option=delete=atime,delete=ctime"] if name == "pax" else []
            made = subprocess.run(command + ["-c", *paths], cwd=folder, capture_output=True, check=True)
            write("tar", f"gnu-{name}.tar", without_padding(made.stdout))


def pinlane(device, *arguments):
    command = [PINLANE, "--device", device, *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def reports():
    few = ["--memory", "pageable,pinned", "--routes", "h2d,both"]
    write("report", "h200.json", pinlane("sim:h200", "--json", "bench", "--sizes", "4KiB,1MiB", *few))
    one = ["--memory", "express", "--routes", "d2h"]
    small = pinlane("sim:pcie3-x16", "--json", "bench", "--sizes", "1", *one)
    write("report", "one.json", small)
    measured = small.replace(b"SIMULATED", b"MEASURED").replace(b'"samples": 1,', b'"samples": 12,')
    write("report", "measured.json", measured)


def profiles():
    with tempfile.TemporaryDirectory() as folder:
        calibrated = pathlib.Path(folder, "calibrated.toml")
        pinlane("sim:pcie4-x16", "calibrate", "--output", calibrated)
        for path in [calibrated, *(ROOT / "crates/model/profiles").glob("*.toml")]:
            lines = path.read_text().splitlines()
            write("profile", path.name, "\n".join(line for line in lines if not line.startswith("#")))


def states():
    state = (
        '{"version":1,"epoch":3,"batch":20,"seed":7,"shuffle":true,"samples":1000,'
        '"batch_size":32,"tail":"keep","rank":0,"world":1}'
    )
    write("state", "shuffled.json", state)
    write("state", "drop.json", state.replace("keep", "drop").replace('"world":1', '"world":4'))
    padded = state.replace("keep", "pad").replace('"rank":0,"world":1', '"rank":6,"world":7')
    write("state", "pad.json", padded.replace('"batch":20', '"batch":5'))
    write("state", "huge.json", state.replace("1000", str(2**64 - 1)).replace("true", "false"))


def main():
    # Findings keep their place: their names start with `found`.
    for path in FUZZ.glob("corpus/*/*"):
        if not path.name.startswith("found"):
            path.unlink()
    copy("safetensors", "load/*.safetensors", "load/sharded/*.safetensors", "dataset/*.safetensors")
    differences()
    copy("index", "load/sharded/*.json")
    shard, other = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    write("index", "other.json", f'{{"weight_map":{{"lm_head.weight":"./{other}"}}}}')
    write("index", "outside.json", f'{{"metadata":{{}},"weight_map":{{"a":"../{shard}"}}}}')
    copy("npy", "load/npy/*.npy", "load/refused/*.npy")
    huge_row = (DATA / "load/npy/empty.npy").read_bytes()[:10]
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': (0, {2**64 - 1}), }}"
    write("npy", "huge-row.npy", huge_row + header.ljust(int.from_bytes(huge_row[8:10], "little")).encode())
    archives()
    copy("tar", "dataset/tar/*.head")
    profiles()
    reports()
    sizes = ["4096", "256M", "256 KiB", "3.5gib", "1e9", "10_000", "2.5e-1TB", " 8 GB ", "1_0.5_0K", "0/8"]
    texts("size", sizes + ["18446744073709551615", "1e20", "-1", "1.5"])
    names = ["model.layers.*\nmodel.layers.0.mlp", "*.weight\nlm_head.weight", "[!a-c]?[]]\nxy]"]
    texts("glob", names + ["h.[0-9].*\nh.7.attn", "[α-ω]*\nλ", "a*b*c\nabcabc", "[a-\na", "[z-a]"])
    states()


if __name__ == "__main__":
    main()
