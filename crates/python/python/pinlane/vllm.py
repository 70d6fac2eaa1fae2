"""vLLM's weights straight to the GPU: ``vllm serve … --load-format pinlane``.

Installed beside vLLM, it registers itself by the entry point ``vllm.general_plugins``. Options go into
``--model-loader-extra-config``: ``{"device_bytes": 2147483648}`` bounds the device memory that is filled ahead of the
model.

Written for vLLM 0.33: ``register_model_loader``, and of ``DefaultModelLoader`` ``_prepare_weights`` and
``_get_weights_iterator``.
"""

import copy
import time

from ._weights import iter_tensors

__all__ = ["register"]

#: Device memory that is filled ahead of the model, in bytes.
DEVICE_BYTES = 2 << 30


def register():
    """Adds the load format ``pinlane`` to vLLM, once."""
    from vllm.model_executor import model_loader

    known = getattr(model_loader, "_LOAD_FORMAT_TO_MODEL_LOADER", {})
    if "pinlane" not in known:
        model_loader.register_model_loader("pinlane")(_loader_class())


def _loader_class():
    from vllm.model_executor.model_loader.default_loader import DefaultModelLoader

    class PinlaneModelLoader(DefaultModelLoader):
        """vLLM's own loader of safetensors files, but for the reading."""

        def __init__(self, load_config):
            # To vLLM's loader it is the format "safetensors": the same files, found in the same way.
            load_config = copy.copy(load_config)
            load_config.load_format = "safetensors"
            extra = dict(load_config.model_loader_extra_config or {})
            self._device_bytes = extra.pop("device_bytes", DEVICE_BYTES)
            load_config.model_loader_extra_config = extra
            super().__init__(load_config)

        def _get_weights_iterator(self, source):
            if self._needs_default():
                return super()._get_weights_iterator(source)
            found = self._prepare_weights(
                source.model_or_path,
                source.subfolder,
                source.revision,
                source.fall_back_to_pt,
                source.allow_patterns_overrides,
            )
            files, use_safetensors = found[1:3]
            if not use_safetensors:
                return super()._get_weights_iterator(source)
            if self.counter_before_loading_weights == 0.0:
                self.counter_before_loading_weights = time.perf_counter()
            weights = iter_tensors(files, "cuda", select=self._selection(source), device_bytes=self._device_bytes)
            return ((source.prefix + name, tensor) for name, tensor in weights)

        def _needs_default(self):
            """Whether vLLM does more than reading: torchao rebuilds tensors, an encoder alone skips files."""
            is_torchao = getattr(self.load_config, "safetensors_load_strategy", None) == "torchao"
            return is_torchao or getattr(self, "_encoder_only_lm_prefixes", None) is not None

        def _selection(self, source):
            """Which tensors this process needs, by name; ``None`` for all."""
            is_unused = getattr(source, "is_unused_weight", None)
            experts = getattr(self, "local_expert_ids", None)
            if is_unused is None and experts is None:
                return None
            from vllm.model_executor.model_loader.ep_weight_filter import should_skip_weight

            def is_needed(name):
                return not should_skip_weight(name, experts) and not (is_unused is not None and is_unused(name))

            return is_needed

    return PinlaneModelLoader
