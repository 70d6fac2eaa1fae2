"""Examples in docstrings run. ``--doctest-modules`` finds only those of Python code, so the native ones are here."""

import doctest
import importlib
import pathlib
import pkgutil

import pytest

import pinlane
from pinlane import _native


def native_examples():
    for name in _native.__all__:
        value = getattr(_native, name)
        members = vars(value).items() if isinstance(value, type) else ()
        for place, documented in [(name, value), *((f"{name}.{member}", found) for member, found in members)]:
            text = getattr(documented, "__doc__", None)
            if isinstance(text, str) and ">>>" in text:
                yield place, text


@pytest.mark.parametrize(("name", "text"), list(native_examples()))
def test_native_docstrings(name, text):
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    output = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=output.append)
    assert tried and not failed, "".join(output)


MODULES = [module.name for module in pkgutil.iter_modules(pinlane.__path__) if module.name not in ("_native", "__main__")]


@pytest.mark.parametrize("name", ["__init__", *MODULES])
def test_docstrings_of_modules(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        module = pinlane if name == "__init__" else importlib.import_module(f"pinlane.{name}")
    except ImportError as missing:
        if (missing.name or "").startswith("pinlane"):
            raise
        pytest.skip(f"{missing.name} is not installed")
    if name == "_compile":
        try:
            pinlane.compile("__global__ void none() {}", device="sim:h200")
        except pinlane.NotSupportedError as error:
            pytest.skip(str(error))
    failed, _ = doctest.testmod(module)
    assert not failed


def test_there_are_examples():
    sources = pathlib.Path(pinlane.__file__).parent.glob("*.py")
    assert sum(">>>" in source.read_text() for source in sources) >= 5
    assert list(native_examples())
