#!/usr/bin/env python3
"""Makes src/cuda/builtin.ptx from src/cuda/*.cu with NVRTC. Needs no GPU and no toolkit.

    python -m pip install nvidia-cuda-nvrtc-cu12==12.0.140
    python crates/kernels/compile.py            # writes the PTX
    python crates/kernels/compile.py --check    # exit status 1 when the committed PTX differs

The compiler's version is fixed: PTX of a newer one would be refused by older drivers, and the
same source must give the same bytes for everyone.
"""

import ctypes
import importlib.util
import pathlib
import sys

PACKAGE = "nvidia-cuda-nvrtc-cu12==12.0.140"
# The oldest target that this compiler takes without a warning; any later GPU loads it too.
OPTIONS = [b"--gpu-architecture=compute_52"]
FOLDER = pathlib.Path(__file__).resolve().parent / "src" / "cuda"
# Compiled as one text, in this order.
SOURCES = [FOLDER / name for name in ("builtin.cu", "convert.cu", "dot.cu", "normalize.cu", "pieces.cu")]
TARGET = FOLDER / "builtin.ptx"


def fnv1a64(data: bytes) -> int:
    """The hash that ties the PTX to its source; tests/ptx.rs computes the same."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def load_nvrtc() -> ctypes.CDLL:
    """The library inside the installed package."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        spec = None
    for folder in spec.submodule_search_locations if spec else []:
        for path in sorted(pathlib.Path(folder).glob("lib/libnvrtc.so.12*")):
            # The compiler opens its builtins by name: have them loaded before.
            for builtins in sorted(path.parent.glob("libnvrtc-builtins.so*")):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(path))
    sys.exit(f"NVRTC is not installed for {sys.executable}\nremedy: {sys.executable} -m pip install {PACKAGE}")


class Compiler:
    """Just enough of NVRTC's interface."""

    def __init__(self) -> None:
        self.nvrtc = load_nvrtc()
        self.nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.check(self.nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        if (major.value, minor.value) != (12, 0):
            sys.exit(f"NVRTC {major.value}.{minor.value} found, 12.0 is needed\nremedy: {sys.executable} -m pip install {PACKAGE}")

    def check(self, status: int) -> None:
        if status != 0:
            sys.exit(f"NVRTC: {self.nvrtc.nvrtcGetErrorString(status).decode()}")

    def text(self, program: ctypes.c_void_p, what: str) -> str:
        """One of the program's texts: "ProgramLog" or "PTX"."""
        size = ctypes.c_size_t()
        self.check(getattr(self.nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.nvrtc, f"nvrtcGet{what}")(program, buffer))
        return buffer.value.decode()

    def compile(self, source: bytes) -> str:
        program = ctypes.c_void_p()
        self.check(self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels", 0, None, None))
        options = (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)
        status = self.nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
        log = self.text(program, "ProgramLog").strip()
        if status != 0 or log:
            # A warning counts as an error.
            sys.exit(log or self.nvrtc.nvrtcGetErrorString(status).decode())
        ptx = self.text(program, "PTX")
        self.check(self.nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
        return ptx


def without_unused(ptx: str) -> str:
    """Leaves out the constants of the compiler's own header, which no kernel uses."""
    kept = [line for line in ptx.strip().splitlines() if not (line.startswith(".global") and "nv6target" in line)]
    if any("nv6target" in line for line in kept):
        sys.exit("a kernel uses constants of nv/target, which are left out")
    return "\n".join(kept) + "\n"


def main() -> None:
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: compile.py [--check]")
    if {path.name for path in FOLDER.glob("*.cu")} != {path.name for path in SOURCES}:
        sys.exit(f"the files in {FOLDER} are not those that SOURCES names")
    texts = [path.read_bytes() for path in SOURCES]
    # Messages of the compiler name the file and its own line.
    numbered = [f'#line 1 "{path.name}"\n'.encode() + text for path, text in zip(SOURCES, texts)]
    names = " ".join(path.name for path in SOURCES)
    head = f"// {names} fnv1a64 {fnv1a64(b''.join(texts)):016x}\n"
    ptx = head + without_unused(Compiler().compile(b"".join(numbered)))
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text() != ptx:
            sys.exit(f"{TARGET.name} is not what {names} give\nremedy: cargo xtask kernels")
        print(f"{TARGET.name} belongs to {names}")
    else:
        TARGET.write_text(ptx)
        print(f"wrote {TARGET}")


main()
