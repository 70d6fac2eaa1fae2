"""Writes the files in this folder: arrays with the real `safetensors` and `numpy` packages, archives
with GNU tar and with Python's `tarfile`.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install safetensors==0.8.0 numpy==2.4.6
    /tmp/venv/bin/python write.py

`arrays.tsv` says what each sample of an array is, as the packages read it back: file, field, sample,
bytes. `archives.tsv` says what `tarfile` finds: archive, key, extension, bytes.
"""

import io
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

HERE = pathlib.Path(__file__).parent

# What WebDataset takes for a sample's key and extension, and what it passes over.
NAME = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$")
META = re.compile(r"__[^/]*__($|/)")


def pattern(seed, count):
    """Bytes that tell one place from another."""
    return bytes((seed * 37 + i * 11) % 251 for i in range(count))


def array(descr, shape, seed):
    dtype = np.dtype(descr)
    data = pattern(seed, int(np.prod(shape)) * dtype.itemsize)
    return np.frombuffer(data, dtype=dtype).reshape(shape)


def arrays():
    lines = []

    def expect(path, name, value):
        for sample, row in enumerate(value):
            row = row.tobytes().hex()
            lines.append(f"{path.relative_to(HERE)}\t{name}\t{sample}\t{row}\n")

    folder = HERE / "npy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, value in {
        "image": array("|u1", (7, 2, 3), 1),
        "label": array("<i8", (7,), 2),
        "mask": array("<f2", (7, 1, 5), 3),
    }.items():
        np.save(folder / f"{name}.npy", value)
        expect(folder, name, np.load(folder / f"{name}.npy"))

    one = HERE / "one.safetensors"
    save_file({"pixels": array("<f4", (5, 2, 2), 4), "class": array("<u2", (5,), 5)}, one)
    for name, value in load_file(one).items():
        expect(one, name, value)

    save_file(
        {"few": array("<f4", (4, 2), 6), "many": array("<f4", (9, 2), 7), "one": np.array(1, np.float32)},
        HERE / "unequal.safetensors",
    )
    (HERE / "arrays.tsv").write_text("".join(lines))


def tree():
    """Files to pack, in this order. Names that the oldest formats have no place for come last."""
    return {
        "train/0001.cls": b"3",
        "train/0001.jpg": pattern(10, 700),
        "train/0002.cls": b"",
        "train/0002.jpg": pattern(11, 512),
        "train/0002.seg.png": pattern(12, 3),
        "train/README": b"passed over",
        "train/v1.0/0001.CLS": b"4",
        "train/v1.0/0001.jpg": pattern(13, 513),
    }, {
        "deep/" + "x" * 90 + "/" + "y" * 60 + ".cls": b"5",  # ustar has a prefix for it
        "deep/" + "x" * 90 + "/" + "y" * 60 + ".jpg": pattern(14, 5),
    }, {
        "long/" + "z" * 180 + ".cls": b"6",
        "long/" + "z" * 180 + ".jpg": pattern(15, 6),
        "long/ü.cls": b"7",
        "long/ü.jpg": pattern(16, 7),
    }


def names(level):
    files = {}
    for part in tree()[: level + 1]:
        files.update(part)
    return files


def with_gnu_tar(target, form, level):
    with tempfile.TemporaryDirectory() as folder:
        for name, data in names(level).items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        os.symlink("0001.jpg", pathlib.Path(folder, "train/0003.jpg"))
        os.link(pathlib.Path(folder, "train/0001.jpg"), pathlib.Path(folder, "train/0004.jpg"))
        listed = ["train", "train/0003.jpg", *names(level), "train/0004.jpg"]
        command = ["tar", f"--format={form}", "--no-recursion", "--mtime=@0", "--owner=0", "--group=0",
                   "--numeric-owner", "--mode=u=rw,go=r", "--blocking-factor=1"]
        if form == "pax":
            command.append("--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime")
        subprocess.run([*command, "-cf", target, "-C", folder, *listed], check=True)


def with_tarfile(target, form, level):
    with tarfile.open(target, "w", format=form) as archive:
        folder = tarfile.TarInfo("train")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        link = tarfile.TarInfo("train/0003.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "l" * 120 if level == 2 else "0001.jpg"
        archive.addfile(link)
        for name, data in names(level).items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def archives():
    folder = HERE / "tar"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for form, level in {"v7": 0, "ustar": 1, "oldgnu": 2, "gnu": 2, "pax": 2}.items():
        with_gnu_tar(folder / f"gnu-{form}.tar", form, level)
    forms = {"ustar": (tarfile.USTAR_FORMAT, 1), "gnu": (tarfile.GNU_FORMAT, 2), "pax": (tarfile.PAX_FORMAT, 2)}
    for name, (form, level) in forms.items():
        with_tarfile(folder / f"python-{name}.tar", form, level)

    # Headers of files that octal digits have no place for: base-256, and a record of pax.
    large = tarfile.TarInfo("large.bin")
    large.size = (8 << 30) + 1
    (folder / "large-gnu.head").write_bytes(large.tobuf(tarfile.GNU_FORMAT))
    (folder / "large-pax.head").write_bytes(large.tobuf(tarfile.PAX_FORMAT))

    lines = []
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as archive:
            for entry in archive:
                found = NAME.match(entry.name)
                if entry.isfile() and not entry.islnk() and found and not META.match(entry.name):
                    data = archive.extractfile(entry).read()
                    lines.append("\t".join([path.name, *found.groups(), data.hex()]) + "\n")
    (HERE / "archives.tsv").write_text("".join(lines))


arrays()
archives()
