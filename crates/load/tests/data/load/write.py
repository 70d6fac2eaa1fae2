"""Writes the files in this folder with the real `safetensors` and `numpy` packages.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install safetensors==0.8.0 numpy==2.4.6
    /tmp/venv/bin/python write.py

`expected.tsv` says what is in them, as these packages read it back: file, tensor, dtype, shape and
bytes. What the library must refuse is in `refused/`.
"""

import json
import pathlib
import shutil
import struct

import numpy as np
import safetensors
from safetensors import TensorSpec, deserialize, serialize
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent

# As the Python package names them, and the bits of an element.
DTYPES = {
    "bool": 8,
    "uint8": 8,
    "int8": 8,
    "float8_e5m2": 8,
    "float8_e4m3fn": 8,
    "float8_e8m0fnu": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2fnuz": 8,
    "int16": 16,
    "uint16": 16,
    "float16": 16,
    "bfloat16": 16,
    "int32": 32,
    "uint32": 32,
    "float32": 32,
    "complex64": 64,
    "float64": 64,
    "int64": 64,
    "uint64": 64,
    "float4_e2m1fn_x2": 8,
}

NPY_DTYPES = ["|b1", "|u1", "|i1", "<i2", "<u2", "<f2", "<i4", "<u4", "<f4", "<c8", "<f8", "<i8", "<u8"]


def pattern(seed, count):
    """Bytes that tell one place from another."""
    return bytes((seed * 37 + i * 11) % 251 for i in range(count))


def every_dtype():
    buffers = {
        name: np.frombuffer(
            bytes(b & 1 for b in pattern(k, 12)) if name == "bool" else pattern(k, 12 * bits // 8),
            dtype=np.uint8,
        )
        for k, (name, bits) in enumerate(DTYPES.items())
    }
    specs = {
        f"layer.{name}": TensorSpec(
            dtype=name, shape=[3, 4], data_ptr=buffer.ctypes.data, data_len=buffer.nbytes
        )
        for name, buffer in buffers.items()
    }
    return bytes(serialize(specs, metadata={"format": "pt", "note": "quotes \" and ü"}))


def six_bits():
    """The format names 6-bit floats, but the Python package only reads them."""
    header = json.dumps(
        {
            "e2m3": {"dtype": "F6_E2M3", "shape": [2, 4], "data_offsets": [0, 6]},
            "e3m2": {"dtype": "F6_E3M2", "shape": [8], "data_offsets": [6, 12]},
        }
    ).encode()
    return struct.pack("<Q", len(header)) + header + pattern(99, 12)


def array(descr, shape, seed):
    dtype = np.dtype(descr)
    data = pattern(seed, int(np.prod(shape)) * dtype.itemsize)
    if dtype.kind == "b":
        data = bytes(b & 1 for b in data)
    return np.frombuffer(data, dtype=dtype).reshape(shape)


def main():
    lines = []

    def expect(path, tensor, dtype, shape, data):
        shape = ",".join(str(dim) for dim in shape)
        lines.append("\t".join([str(path.relative_to(HERE)), json.dumps(tensor), dtype, shape, bytes(data).hex()]))

    def read_back(path):
        for name, view in sorted(deserialize(path.read_bytes())):
            expect(path, name, view["dtype"], view["shape"], view["data"])

    for folder in ["sharded", "npy", "refused"]:
        shutil.rmtree(HERE / folder, ignore_errors=True)
        (HERE / folder).mkdir()

    for name, data in {"dtypes": every_dtype(), "six_bits": six_bits()}.items():
        path = HERE / f"{name}.safetensors"
        path.write_bytes(data)
        read_back(path)

    odd = HERE / "odd.safetensors"
    save_file(
        {
            "scalar": np.array(1.5, np.float32),
            "empty": np.zeros((0, 3), np.int16),
            "name with space, ü and \n": np.arange(5, dtype=np.uint8),
        },
        odd,
    )
    read_back(odd)
    save_file({}, HERE / "nothing.safetensors", metadata={"only": "this"})

    shards = {
        "model-00001-of-00002.safetensors": {
            "model.layers.0.weight": array("<f4", (4, 2), 1),
            "model.layers.1.weight": array("<f4", (4, 2), 2),
        },
        "model-00002-of-00002.safetensors": {"lm_head.weight": array("<f2", (3, 5), 3)},
    }
    for name, tensors in shards.items():
        save_file(tensors, HERE / "sharded" / name, metadata={"format": "np"})
        read_back(HERE / "sharded" / name)
    total = sum(t.nbytes for tensors in shards.values() for t in tensors.values())
    weight_map = {tensor: name for name, tensors in shards.items() for tensor in tensors}
    index = {"metadata": {"total_size": total, "by": "write.py"}, "weight_map": weight_map}
    (HERE / "sharded" / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")

    safetensors_names = dict(
        zip(NPY_DTYPES, "BOOL U8 I8 I16 U16 F16 I32 U32 F32 C64 F64 I64 U64".split())
    )
    arrays = {np.dtype(d).name: (array(d, (2, 3), k), (1, 0)) for k, d in enumerate(NPY_DTYPES)}
    arrays["scalar"] = (array("<f8", (), 20), (1, 0))
    arrays["vector"] = (array("<i4", (7,), 21), (1, 0))
    arrays["empty"] = (array("<i4", (0, 3), 22), (1, 0))
    arrays["version2"] = (array("<f4", (2, 1, 2), 23), (2, 0))
    arrays["version3"] = (array("<f4", (2, 2), 24), (3, 0))
    for name, (value, version) in sorted(arrays.items()):
        path = HERE / "npy" / f"{name}.npy"
        with path.open("wb") as file:
            np.lib.format.write_array(file, value, version=version)
        back = np.load(path)
        expect(path, name, safetensors_names[back.dtype.str], back.shape, back.tobytes())

    refused = {
        "big_endian": np.arange(4, dtype=">f4"),
        "complex128": np.zeros(2, np.complex128),
        "datetime": np.array(["2020-01-01"], "datetime64[D]"),
        "fortran": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        "objects": np.array([{"a": 1}, None], dtype=object),
        "structured": np.zeros(2, dtype=[("x", "<f4"), ("y", "<i2", (2,))]),
        "text": np.array(["ab", "c"]),
    }
    for name, value in refused.items():
        np.save(HERE / "refused" / f"{name}.npy", value, allow_pickle=True)
    with (HERE / "refused" / "field_names.npy").open("wb") as file:
        np.lib.format.write_array(file, np.zeros(1, dtype=[("ü", "<f4")]), version=(1, 0))

    (HERE / "expected.tsv").write_text("".join(line + "\n" for line in lines))


print(f"safetensors {safetensors.__version__}, numpy {np.__version__}")
main()
