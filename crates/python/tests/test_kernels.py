"""compile, Module.kernel and launch: CUDA C through the real compiler, run by the CPU twins of Pinlane's kernels."""

import os
import subprocess
import sys

import numpy as np
import pytest

import pinlane

# A simulated GPU runs kernels by their name, if Pinlane has them itself.
SAXPY = """
extern "C" __global__ void pinlane_saxpy_f32(unsigned long long n, float a, const float* x, float* y) {
    unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


@pytest.fixture(scope="module")
def compiler():
    """Skips where the compiler is not installed."""
    try:
        pinlane.compile(SAXPY, device="sim:h200")
    except pinlane.NotSupportedError as error:
        pytest.skip(str(error))


@pytest.fixture
def saxpy(compiler, gpu):
    return pinlane.compile(SAXPY, device=gpu).kernel("pinlane_saxpy_f32")


@pytest.fixture
def arrays(gpu):
    return [pinlane.to_device(np.ones(1000, "f4"), gpu) for _ in range(2)]


@pytest.mark.parametrize("scalars", [(1000, 3.0), (True + 999, 3), (np.uint64(1000), np.float32(3)), (1000, np.array(3, "f4"))])
def test_a_kernel_gets_its_arguments(saxpy, arrays, scalars):
    x, y = arrays
    saxpy(4, 256, *scalars, x, y)
    assert (y.numpy() == 4).all()
    pinlane.launch(saxpy, (4,), (256, 1, 1), *scalars, x, y)
    assert (y.numpy() == 7).all()
    saxpy((4, 1), 256, (*scalars, x, y))  # CuPy's way
    assert (y.numpy() == 10).all()


def test_a_kernel_waits_for_its_arrays_on_any_stream(gpu, saxpy):
    first, second = gpu.stream(), gpu.stream()
    x = pinlane.to_device(np.ones(1000, "f4"), gpu, stream=first)
    for value in range(20):
        y = pinlane.to_device(np.full(1000, value, "f4"), gpu, stream=first)
        saxpy(4, 256, 1000, 1.0, x, y, stream=second, shared_bytes=128)
        assert (pinlane.to_host(y, stream=first) == value + 1).all()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda n, a, x, y: (n, a, x), TypeError, "takes 4 arguments, not 3"),
        (lambda n, a, x, y: (), TypeError, "takes 4 arguments, not 0"),
        (lambda n, a, x, y: (n, a, x, y.numpy()), TypeError, "argument 3 .* copy it with to_device"),
        (lambda n, a, x, y: (n, a, x, [1.0]), TypeError, "argument 3 .* not list"),
        (lambda n, a, x, y: (n, x, x, y), TypeError, "argument 1 .* is a pointer"),
        (lambda n, a, x, y: (n, None, x, y), TypeError, "argument 1 .* is a pointer"),
        (lambda n, a, x, y: (1.5, a, x, y), TypeError, "argument 0 .* is a float"),
        (lambda n, a, x, y: (1 << 64, a, x, y), TypeError, "does not fit into 64 bits"),
        (lambda n, a, x, y: (np.int32(1000), a, x, y), TypeError, "int32 is not the type .* integer of 64 bits"),
        (lambda n, a, x, y: (n, np.float64(3), x, y), TypeError, "float64 is not the type .* float of 32 bits"),
        (lambda n, a, x, y: (n, a, x, pinlane.to_device(np.ones(3, "f4"), "sim:null")), TypeError, "is on sim:null"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(saxpy, arrays, change, error, message):
    with pytest.raises(error, match=message):
        saxpy(4, 256, *change(1000, 3.0, *arrays))
    assert (arrays[1].numpy() == 1).all()


@pytest.mark.parametrize("shape", [0, -1, (), (1, 1, 1, 1), (1, 0), "4", 1.5, None])
def test_shapes_that_are_none_are_refused(saxpy, arrays, shape):
    with pytest.raises(ValueError, match="one to three numbers"):
        saxpy(shape, 256, 1000, 3.0, *arrays)
    with pytest.raises(ValueError, match="one to three numbers"):
        saxpy(4, shape, 1000, 3.0, *arrays)


def test_errors_of_a_launch_have_no_internal_names(saxpy, arrays):
    with pytest.raises(ValueError, match="^cannot launch pinlane_saxpy_f32: .*4096"):
        saxpy(1, 4096, 1000, 3.0, *arrays)
    with pytest.raises(TypeError, match="kernel must be what Module.kernel returned, not int"):
        pinlane.launch(5, 1, 1)


def test_what_is_no_source(gpu):
    with pytest.raises(TypeError, match="source must be a string of CUDA C, not int"):
        pinlane.compile(5, device=gpu)
    with pytest.raises(TypeError, match=r"options must be a list of strings, not \[5\]"):
        pinlane.compile("", device=gpu, options=[5])


def test_a_source_that_does_not_compile_has_the_compilers_log(compiler, gpu):
    with pytest.raises(pinlane.CompileError, match=r"(?s)source.cu\(2\).*undeclared"):
        pinlane.compile("__global__ void fill(unsigned* out) {\n  out[0] = undeclared;\n}", device=gpu)
    guarded = "#if SIZE != 32\n#error wrong size\n#endif\n__global__ void fill() {}"
    pinlane.compile(guarded, device=gpu, options=["-DSIZE=32"])
    pinlane.compile(guarded, device=gpu, options="-DSIZE=32")
    with pytest.raises(pinlane.CompileError, match="wrong size"):
        pinlane.compile(guarded, device=gpu)
    with pytest.raises(pinlane.CompileError, match="--no-such-option"):
        pinlane.compile(guarded, device=gpu, options=["--no-such-option"])


def test_a_simulated_gpu_executes_no_cuda_code(compiler, gpu):
    module = pinlane.compile("__global__ void fill(float* out) { out[threadIdx.x] = 1; }", device=gpu)
    assert module.device == gpu and ".entry _Z4fillPf" in module.ptx
    with pytest.raises(pinlane.NotSupportedError, match="kernel fill cannot run on sim:h200"):
        module.kernel("fill")
    with pytest.raises(ValueError, match="^there is no kernel `other` in the source"):
        module.kernel("other")


def test_small_and_large_parameters(compiler, gpu):
    """Types are checked before the launch; the simulated GPU then refuses the kernel, whose twin has other ones."""
    source = """
    struct Pair { double x, y; };
    struct __align__(2) Half { unsigned short bits; };
    extern "C" __global__ void pinlane_saxpy_f32(char a, bool b, short c, int d, double e, Half f, Pair g) {}
    """
    kernel = pinlane.compile(source, device=gpu).kernel("pinlane_saxpy_f32")
    good = [np.int8(-1), True, np.int16(-1), -1, 0.5, np.float16(1), np.complex128(1)]
    with pytest.raises(TypeError, match="argument 6 .* 16 bytes that cannot be passed"):
        kernel(1, 1, *good)
    for number, wrong, message in [
        (0, 256, "8 bits"),
        (0, -129, "8 bits"),
        (1, 2.0, "a float"),
        (2, np.int8(1), "int8 is not the type"),
        (3, -(1 << 31) - 1, "32 bits"),
        (4, np.float32(1), "float32 is not the type"),
        (5, 1.0, "2 bytes"),
        (6, np.complex64(1), "complex64 is not the type"),
    ]:
        with pytest.raises(TypeError, match=f"argument {number} .*{message}"):
            kernel(1, 1, *good[:number], wrong, *good[number + 1 :])


def test_kernels_on_cuda_memory(compiler, on_simcuda):
    on_simcuda(
        f"""
        import numpy as np, pinlane
        saxpy = pinlane.compile({SAXPY!r}).kernel("pinlane_saxpy_f32")
        x, y = (pinlane.to_device(np.ones(1000, "f4")) for _ in range(2))

        class Foreign:  # an array of another library, on a stream of its own
            def __init__(self, array, stream):
                self.array, self.stream = array, stream

            @property
            def __cuda_array_interface__(self):
                return dict(self.array.__cuda_array_interface__, stream=self.stream.handle)

        stream = pinlane.Stream()
        saxpy(4, 256, 1000, 3.0, Foreign(x, stream), Foreign(y, stream))
        stream.synchronize()
        assert (y.numpy() == 4).all()
        saxpy(4, 256, (1000, np.float32(1), x, y), stream=stream.handle)
        stream.synchronize()
        assert (y.numpy() == 5).all()
        missing = pinlane.compile("__global__ void fill(int* out) {{}}").kernel("fill")
        try:
            missing(1, 1, x)
        except pinlane.Error as error:
            print(type(error).__name__, error)
        """
    )


def test_without_a_compiler_the_error_says_how_to_get_one():
    program = """if True:
        import pinlane
        try:
            pinlane.compile("", device="sim:h200")
        except pinlane.NotSupportedError as error:
            assert "PINLANE_NVRTC" in str(error), error
        else:
            raise AssertionError
    """
    environment = {**os.environ, "PINLANE_NVRTC": "/no/such/file"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
