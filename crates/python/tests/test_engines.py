"""Loading into engines: transformers and diffusers for real, on the CPU; vLLM and SGLang by stand-ins of what is hooked.

The stand-ins mirror vLLM 0.33 and SGLang 0.5.23.
"""

import collections
import dataclasses
import enum
import importlib
import importlib.metadata
import json
import pathlib
import sys
import tomllib
import types

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")

import pinlane
import pinlane.diffusers
import pinlane.sglang
import pinlane.transformers
import pinlane.vllm

PYPROJECT = pathlib.Path(__file__).parents[3] / "pyproject.toml"


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """The folder of a tiny Llama with random weights in several files."""
    folder = tmp_path_factory.mktemp("llama")
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(1)
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="12KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    return folder


def outputs(model):
    with torch.no_grad():
        return model(torch.arange(10).reshape(2, 5)).logits


@pytest.fixture(scope="module")
def expected(llama):
    return outputs(transformers.LlamaForCausalLM.from_pretrained(llama, dtype="auto"))


def test_transformers_from_a_lazy_state_dict(llama, expected):
    weights = pinlane.transformers.lazy_state_dict(llama, "cpu")
    assert len(weights) == 3 * 9 + 3
    config = transformers.AutoConfig.from_pretrained(llama)
    model = transformers.LlamaForCausalLM.from_pretrained(None, config=config, state_dict=weights, dtype="auto")
    assert model.dtype == torch.bfloat16
    assert torch.equal(outputs(model), expected)


def test_transformers_finds_the_dtype_in_the_weights(llama):
    weights = pinlane.transformers.lazy_state_dict(llama, "cpu")
    config = transformers.AutoConfig.from_pretrained(llama)
    config.dtype = None
    model = transformers.LlamaForCausalLM.from_pretrained(None, config=config, state_dict=weights, dtype="auto")
    assert model.dtype == torch.bfloat16


def test_transformers_in_a_block(llama, expected, monkeypatch):
    opened = []
    original = pinlane.transformers.LazyFile.__init__

    def counting(self, filename, device):
        opened.append(filename)
        original(self, filename, device)

    monkeypatch.setattr(pinlane.transformers.LazyFile, "__init__", counting)
    before = transformers.modeling_utils.safe_open
    with pinlane.transformers.fast_loading("cpu"):
        model = transformers.LlamaForCausalLM.from_pretrained(llama, dtype="auto")
    assert torch.equal(outputs(model), expected)
    assert len(set(opened)) == len(list(llama.glob("*.safetensors")))
    assert transformers.modeling_utils.safe_open is before


def test_transformers_is_itself_again_after_an_error():
    before = transformers.modeling_utils.safe_open
    with pytest.raises(KeyError), pinlane.transformers.fast_loading("cpu"):
        assert transformers.modeling_utils.safe_open is not before
        raise KeyError
    assert transformers.modeling_utils.safe_open is before


@pytest.mark.parametrize("library", ["transformers", "diffusers"])
def test_fast_loading_that_would_have_no_effect_is_refused(library, monkeypatch):
    pytest.importorskip(library)
    engine = getattr(pinlane, library)
    with pytest.raises(pinlane.NoDeviceError, match="bogus"), engine.fast_loading("bogus"):
        pass
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, library, None)
        with pytest.raises(ImportError, match=library), engine.fast_loading("cpu"):
            pass
    for name in getattr(engine, "_MODULES", None) or [engine._MODULE]:
        module = importlib.import_module(name)
        for replaced in ("safe_open", "safetensors"):
            monkeypatch.delattr(module, replaced, raising=False)
    with pytest.raises(pinlane.NotSupportedError, match=f"{library} [0-9]"), engine.fast_loading("cpu"):
        pass


def test_a_lazy_file_is_loaded_at_once_and_hands_out_each_tensor_once(llama, monkeypatch):
    loads = []

    def counting(path, device):
        loads.append(path)
        return pinlane.load_file(path, device)

    monkeypatch.setattr(pinlane.transformers, "load_file", counting)
    weights = pinlane.transformers.lazy_state_dict(llama, "sim:h200")
    truth = {}
    for path in llama.glob("*.safetensors"):
        truth.update(safetensors_torch.load_file(path))
    assert weights.keys() == truth.keys()
    for name, lazy in weights.items():
        assert lazy.shape == tuple(truth[name].shape) and lazy.dtype == truth[name].dtype
        for _ in range(2):
            on_device = lazy[...]
            assert type(on_device) is pinlane.DeviceArray
            assert on_device.numpy().astype("f4").tolist() == truth[name].float().tolist()
    assert len(loads) == len(list(llama.glob("*.safetensors")))


def test_a_part_of_a_lazy_tensor_reads_no_file_at_once(llama, monkeypatch):
    monkeypatch.delattr(pinlane.transformers, "load_file")
    weights = pinlane.transformers.lazy_state_dict(llama, "sim:h200")
    lazy = weights["model.embed_tokens.weight"]
    assert lazy.get_dtype() == "BF16" and lazy.is_floating_point() and lazy.ndim == 2
    assert lazy[8:16].shape == (8, 32)


def test_files_of_a_folder_without_an_index(tmp_path):
    with pytest.raises(FileNotFoundError, match="no safetensors files"):
        pinlane.transformers.lazy_state_dict(tmp_path, "cpu")
    for number in range(2):
        safetensors_torch.save_file({f"x{number}": torch.ones(2)}, tmp_path / f"{number}.safetensors")
    assert pinlane.transformers.lazy_state_dict(tmp_path, "cpu").keys() == {"x0", "x1"}
    index = {"weight_map": {"x1": "1.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert pinlane.transformers.lazy_state_dict(tmp_path, "cpu").keys() == {"x1"}


def install(monkeypatch, modules):
    """Puts stand-ins into ``sys.modules``, with their parents."""
    for path, contents in modules.items():
        parts = path.split(".")
        for length in range(1, len(parts) + 1):
            name = ".".join(parts[:length])
            if name not in sys.modules:
                module = types.ModuleType(name)
                module.__path__ = []
                monkeypatch.setitem(sys.modules, name, module)
                if length > 1:
                    monkeypatch.setattr(sys.modules[".".join(parts[: length - 1])], parts[length - 1], module, raising=False)
        vars(sys.modules[path]).update(contents)


@pytest.fixture
def on_simulator(monkeypatch):
    """Engines ask for "cuda"; here that is a simulated device, so tensors are DeviceArrays. Returns what they ask for."""
    asked = []

    def on_simulator(paths, device, **options):
        asked.append((device, options))
        return pinlane.iter_tensors(paths, "sim:h200", **options)

    for module in (pinlane.vllm, pinlane.sglang):
        monkeypatch.setattr(module, "iter_tensors", on_simulator)
    return asked


def test_diffusers(tmp_path, monkeypatch):
    diffusers = pytest.importorskip("diffusers")
    utils = importlib.import_module("diffusers.models.model_loading_utils")
    torch.manual_seed(2)
    model = diffusers.UNet2DModel(
        sample_size=8, block_out_channels=(8,), down_block_types=("DownBlock2D",), up_block_types=("UpBlock2D",),
        layers_per_block=1, norm_num_groups=2,
    )  # fmt: skip
    model.save_pretrained(tmp_path)
    (file,) = tmp_path.glob("*.safetensors")
    before, loads = utils.safetensors, []

    def counting(path, device):
        loads.append((str(path), device))
        return pinlane.load_file(path, device)

    monkeypatch.setattr(pinlane.diffusers, "load_file", counting)
    with pinlane.diffusers.fast_loading("cpu"):
        loaded = diffusers.UNet2DModel.from_pretrained(tmp_path)
        assert utils.safetensors.safe_open is before.safe_open
        assert utils.safetensors.torch.save_file is safetensors_torch.save_file
    assert loads == [(str(file), "cpu")]
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    with pinlane.diffusers.fast_loading("sim:h200"):
        # Diffusers asks for host memory.
        on_device = utils.load_state_dict(file)
    assert all(type(tensor) is pinlane.DeviceArray for tensor in on_device.values())
    assert utils.safetensors is before


@dataclasses.dataclass
class Source:
    model_or_path: str
    revision: str = None
    subfolder: str = None
    prefix: str = ""
    fall_back_to_pt: bool = True
    allow_patterns_overrides: list = None
    is_unused_weight: object = None
    model_config: object = None


@dataclasses.dataclass
class LoadConfig:
    load_format: object = "pinlane"
    model_loader_extra_config: dict = dataclasses.field(default_factory=dict)
    safetensors_load_strategy: str = None
    draft_model_idx: int = None


def own_loader_of(engine):
    """``DefaultModelLoader`` of an engine: the parts that Pinlane's loader calls or replaces."""

    class DefaultModelLoader:
        counter_before_loading_weights = 0.0

        def __init__(self, load_config):
            assert load_config.load_format == "safetensors"
            assert not set(load_config.model_loader_extra_config) - {"num_threads"}
            self.load_config = load_config
            self.local_expert_ids = None
            self._encoder_only_lm_prefixes = None

        def _find(self, model):
            found = sorted(str(path) for path in pathlib.Path(model).glob("*.safetensors"))
            return (model, found, True) if found else (model, [], False)

        if engine == "vllm":

            def _prepare_weights(
                self, model_name_or_path, subfolder, revision, fall_back_to_pt, allow_patterns_overrides
            ):
                return *self._find(model_name_or_path), "model.safetensors.index.json"

            def _get_weights_iterator(self, source):
                return iter([("own", source)])

        else:

            def _prepare_weights(self, model_name_or_path, revision, fall_back_to_pt, allow_patterns_overrides=None):
                return self._find(model_name_or_path)

            def _get_weights_iterator(
                self, source, *, resolved_source=None, startup_prefetch_started=False, startup_prefetch_active=False
            ):
                return iter([("own", source)])

            @classmethod
            def _filter_mtp_weights(cls, weights_iterator, prefix, draft_model_idx):
                return ((f"{prefix}draft{draft_model_idx}.{name}", tensor) for name, tensor in weights_iterator)

    return DefaultModelLoader


@pytest.fixture
def model_folder(tmp_path):
    for number in range(3):
        tensors = {f"layer{number}.experts.{expert}": torch.full((4,), 10.0 * number + expert) for expert in range(2)}
        safetensors_torch.save_file(tensors, tmp_path / f"{number}.safetensors")
    return tmp_path


def values(weights):
    return {name: tensor.numpy()[0] for name, tensor in weights}


@pytest.fixture
def vllm(monkeypatch):
    loaders = {}
    base = own_loader_of("vllm")

    def register_model_loader(load_format):
        def wrapper(model_loader_cls):
            assert issubclass(model_loader_cls, base) and load_format not in loaders
            loaders[load_format] = model_loader_cls
            return model_loader_cls

        return wrapper

    def should_skip_weight(weight_name, local_expert_ids):
        return local_expert_ids is not None and int(weight_name.rsplit(".", 1)[1]) not in local_expert_ids

    folder = "vllm.model_executor.model_loader"
    contents = {"register_model_loader": register_model_loader, "_LOAD_FORMAT_TO_MODEL_LOADER": loaders}
    install(
        monkeypatch,
        {
            folder: contents,
            f"{folder}.default_loader": {"DefaultModelLoader": base},
            f"{folder}.ep_weight_filter": {"should_skip_weight": should_skip_weight},
        },
    )
    pinlane.vllm.register()
    pinlane.vllm.register()
    return loaders


def test_vllm_reads_all_weights(vllm, model_folder, on_simulator):
    config = LoadConfig(model_loader_extra_config={"device_bytes": 1000, "num_threads": 2})
    loader = vllm["pinlane"](config)
    # vLLM's own configuration is as it was.
    assert config.load_format == "pinlane" and "device_bytes" in config.model_loader_extra_config
    weights = values(loader._get_weights_iterator(Source(str(model_folder), prefix="model.")))
    assert weights == {f"model.layer{n}.experts.{e}": 10.0 * n + e for n in range(3) for e in range(2)}
    assert on_simulator == [("cuda", {"select": None, "device_bytes": 1000})]
    assert loader.counter_before_loading_weights > 0


def test_vllm_reads_only_what_the_process_needs(vllm, model_folder, on_simulator):
    loader = vllm["pinlane"](LoadConfig())
    loader.local_expert_ids = {1}
    source = Source(str(model_folder), is_unused_weight=lambda name: name.startswith("layer2"))
    assert values(loader._get_weights_iterator(source)) == {"layer0.experts.1": 1.0, "layer1.experts.1": 11.0}


def test_vllm_does_the_rest_itself(vllm, tmp_path, model_folder):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert next(vllm["pinlane"](LoadConfig())._get_weights_iterator(Source(str(empty))))[0] == "own"
    loader = vllm["pinlane"](LoadConfig())
    loader.load_config.safetensors_load_strategy = "torchao"
    assert next(loader._get_weights_iterator(Source(str(model_folder))))[0] == "own"
    loader = vllm["pinlane"](LoadConfig())
    loader._encoder_only_lm_prefixes = ("language_model.",)
    assert next(loader._get_weights_iterator(Source(str(model_folder))))[0] == "own"


class HookType(enum.Enum):
    AROUND = "around"


class LoadFormat(str, enum.Enum):
    AUTO = "auto"
    SAFETENSORS = "safetensors"


@pytest.fixture
def sglang(monkeypatch):
    """SGLang, and its plugins loaded."""
    hooks = []
    choices = ["auto", "safetensors"]

    @dataclasses.dataclass
    class Config(LoadConfig):
        def __post_init__(self):
            self._verify_load_format()

        def _verify_load_format(self):
            if isinstance(self.load_format, str):
                self.load_format = LoadFormat(self.load_format.lower())

    class HookRegistry:
        @classmethod
        def register(cls, target, hook, hook_type, *, source=None):
            assert hook_type is HookType.AROUND
            hooks.append((target, hook))

    def maybe_add_mtp_safetensors(files, folder, index_file, hf_config):
        return [*files, *hf_config]

    loader = {"DefaultModelLoader": own_loader_of("sglang"), "maybe_add_mtp_safetensors": maybe_add_mtp_safetensors}
    install(
        monkeypatch,
        {
            "sglang.srt.server_args": {"LOAD_FORMAT_CHOICES": choices, "add_load_format_choices": choices.extend},
            "sglang.srt.plugins.hook_registry": {"HookRegistry": HookRegistry, "HookType": HookType},
            "sglang.srt.configs.load_config": {"LoadConfig": Config, "LoadFormat": LoadFormat},
            "sglang.srt.model_loader.loader": loader,
        },
    )
    pinlane.sglang._loader_class.cache_clear()
    pinlane.sglang.register()
    pinlane.sglang.register()
    assert choices == ["auto", "safetensors", "pinlane"]
    [(target, hook)] = hooks
    assert target == "sglang.srt.configs.load_config.LoadConfig._verify_load_format"
    original = Config._verify_load_format
    Config._verify_load_format = lambda *arguments: hook(original, *arguments)
    yield Config
    pinlane.sglang._loader_class.cache_clear()


def loader_for(config):
    """As in ``get_model_loader``."""
    assert isinstance(config.load_format, type)
    return config.load_format(config)


def test_sglang_reads_all_weights(sglang, model_folder, on_simulator):
    assert sglang("AUTO").load_format is LoadFormat.AUTO
    with pytest.raises(ValueError):
        sglang("unknown")
    loader = loader_for(sglang("pinlane", {"device_bytes": 1000}))
    weights = values(loader._get_weights_iterator(Source(str(model_folder), prefix="m.")))
    assert weights == {f"m.layer{n}.experts.{e}": 10.0 * n + e for n in range(3) for e in range(2)}
    assert on_simulator == [("cuda", {"device_bytes": 1000})]


def test_sglang_drafts_and_resolved_files(sglang, model_folder, on_simulator):
    loader = loader_for(sglang("pinlane", draft_model_idx=1))
    resolved = types.SimpleNamespace(weight_files=(str(model_folder / "0.safetensors"),), use_safetensors=True)
    weights = loader._get_weights_iterator(
        Source("unused"), resolved_source=resolved, startup_prefetch_started=True, startup_prefetch_active=False
    )
    assert values(weights) == {"draft1.layer0.experts.0": 0.0, "draft1.layer0.experts.1": 1.0}


def test_sglang_adds_the_files_of_drafts(sglang, model_folder, tmp_path, on_simulator):
    extra = tmp_path / "mtp"
    extra.mkdir()
    safetensors_torch.save_file({"mtp.0": torch.full((1,), 7.0)}, extra / "mtp.safetensors")
    model_config = types.SimpleNamespace(hf_config=[str(extra / "mtp.safetensors")])
    loader = loader_for(sglang("pinlane"))
    assert values(loader._get_weights_iterator(Source(str(model_folder), model_config=model_config)))["mtp.0"] == 7


def test_sglang_reads_other_formats_itself(sglang, tmp_path):
    loader = loader_for(sglang("pinlane"))
    assert next(loader._get_weights_iterator(Source(str(tmp_path))))[0] == "own"
    resolved = types.SimpleNamespace(weight_files=("x.bin",), use_safetensors=False)
    weights = loader._get_weights_iterator(Source(str(tmp_path)), resolved_source=resolved)
    assert next(weights)[0] == "own"


def test_entry_points_name_functions():
    groups = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]
    found = collections.defaultdict(list)
    for group, points in groups.items():
        for name, value in points.items():
            point = importlib.metadata.EntryPoint(name, value, group)
            found[group].append((name, point.load()))
    assert found == {
        "vllm.general_plugins": [("pinlane", pinlane.vllm.register)],
        "sglang.srt.plugins": [("pinlane", pinlane.sglang.register)],
    }
