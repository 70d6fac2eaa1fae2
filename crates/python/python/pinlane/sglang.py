"""SGLang's weights straight to the GPU: ``python -m sglang.launch_server … --load-format pinlane``.

Installed beside SGLang, it registers itself by the entry point ``sglang.srt.plugins``.

Written for SGLang 0.5.23: ``add_load_format_choices`` for the command line; a hook on
``LoadConfig._verify_load_format``, which else refuses names that are not in its enum; ``get_model_loader``, which takes
a class as a load format; and of ``DefaultModelLoader`` ``_prepare_weights`` and ``_get_weights_iterator``.
"""

import copy
import functools
import time

from ._weights import iter_tensors

__all__ = ["register"]

#: Device memory that is filled ahead of the model, in bytes.
DEVICE_BYTES = 2 << 30

_TARGET = "sglang.srt.configs.load_config.LoadConfig._verify_load_format"


def register():
    """Adds the load format ``pinlane`` to SGLang, once."""
    from sglang.srt import server_args
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    if "pinlane" in server_args.LOAD_FORMAT_CHOICES:
        return
    server_args.add_load_format_choices(["pinlane"])
    # SGLang applies the hooks when all plugins are loaded.
    HookRegistry.register(_TARGET, _verify_load_format, HookType.AROUND)


def _verify_load_format(original, config):
    """Puts the class of the loader in place of its name."""
    if isinstance(config.load_format, str) and config.load_format.lower() == "pinlane":
        config.load_format = _loader_class()
        return None
    return original(config)


@functools.cache
def _loader_class():
    from sglang.srt.configs.load_config import LoadFormat
    from sglang.srt.model_loader import loader

    class PinlaneModelLoader(loader.DefaultModelLoader):
        """SGLang's own loader of safetensors files, but for the reading."""

        def __init__(self, load_config):
            # To SGLang's loader it is the format "safetensors": the same files, found in the same way.
            load_config = copy.copy(load_config)
            load_config.load_format = LoadFormat.SAFETENSORS
            extra = dict(load_config.model_loader_extra_config or {})
            self._device_bytes = extra.pop("device_bytes", DEVICE_BYTES)
            load_config.model_loader_extra_config = extra
            super().__init__(load_config)

        def _get_weights_iterator(self, source, *, resolved_source=None, **startup):
            files = self._safetensors_files(source, resolved_source)
            if files is None:
                if resolved_source is not None:
                    startup["resolved_source"] = resolved_source
                return super()._get_weights_iterator(source, **startup)
            weights = iter_tensors(files, "cuda", device_bytes=self._device_bytes)
            draft = getattr(self.load_config, "draft_model_idx", None)
            if draft is not None:
                return self._filter_mtp_weights(weights, source.prefix, draft)
            if self.counter_before_loading_weights == 0.0:
                self.counter_before_loading_weights = time.perf_counter()
            return ((source.prefix + name, tensor) for name, tensor in weights)

        def _safetensors_files(self, source, resolved):
            """The files to read; ``None`` if they are of another format."""
            if resolved is not None:
                return list(resolved.weight_files) if resolved.use_safetensors else None
            folder, files, use_safetensors = self._prepare_weights(
                source.model_or_path, source.revision, source.fall_back_to_pt, source.allow_patterns_overrides
            )
            if not use_safetensors:
                return None
            if source.model_config is not None:
                index = "model.safetensors.index.json"
                files = loader.maybe_add_mtp_safetensors(files, folder, index, source.model_config.hf_config)
            return files

    return PinlaneModelLoader
