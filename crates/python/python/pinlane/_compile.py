"""CUDA C at run time. The compiler, NVRTC, is found where PyTorch and CuPy find it."""

from ._native import compile_source
from .errors import NotSupportedError

# Folders of NVIDIA's packages inside of the namespace package ``nvidia``, of CUDA 13 and 12.
_PACKAGES = ("cu13", "cuda_nvrtc")


def compile(source, *, device=None, options=()):
    """Compiles CUDA C for a device and loads it, with NVIDIA's compiler NVRTC.

    ``options`` are those of NVRTC, such as ``"-DSIZE=32"`` or ``"--use_fast_math"``. A source that does not compile
    raises :class:`CompileError` with the compiler's log. The compiler comes with torch and CuPy, or by
    ``pip install nvidia-cuda-nvrtc``.

    A simulated GPU executes no CUDA code. Sources compile for it, but only kernels that are built into Pinlane, such as
    this one, can be launched.

    >>> import numpy as np, pinlane
    >>> source = '''
    ... extern "C" __global__ void pinlane_saxpy_f32(unsigned long long n, float a, const float* x, float* y) {
    ...     unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) y[i] += a * x[i];
    ... }'''
    >>> module = pinlane.compile(source, device="sim:h200")
    >>> saxpy = module.kernel("pinlane_saxpy_f32")
    >>> x, y = (pinlane.to_device(np.ones(1000, "f4"), "sim:h200") for _ in range(2))
    >>> saxpy(4, 256, x.size, 3.0, x, y)
    >>> y.numpy()[:3]
    array([4., 4., 4.], dtype=float32)
    """
    if not isinstance(source, str):
        raise TypeError(f"source must be a string of CUDA C, not {type(source).__name__}")
    options = [options] if isinstance(options, str) else list(options)
    if not all(isinstance(option, str) for option in options):
        raise TypeError(f"options must be a list of strings, not {options!r}")
    try:
        return compile_source(source, device, options)
    except NotSupportedError:
        # The compiler was not found. It may be beside this package, in an environment that is not activated.
        if not _load_compiler():
            raise
    return compile_source(source, device, options)


def _load_compiler():
    """Loads the compiler of NVIDIA's packages. Returns whether there is one."""
    import ctypes
    import importlib.util
    import pathlib

    found = importlib.util.find_spec("nvidia")
    for folder in (found and found.submodule_search_locations) or ():
        for package in _PACKAGES:
            libraries = pathlib.Path(folder, package, "lib")
            for compiler in sorted(libraries.glob("libnvrtc.so.*")):
                try:
                    # It opens its builtins by their name.
                    for builtins in sorted(libraries.glob("libnvrtc-builtins.so.*")):
                        ctypes.CDLL(str(builtins))
                    ctypes.CDLL(str(compiler))
                except OSError:
                    continue
                return True
    return False
