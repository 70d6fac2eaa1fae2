"""Files of weights that are loaded: written once, through the page cache."""

import os
import shutil
import sys

from common import LOAD_SCRIPTS

sys.path.insert(0, LOAD_SCRIPTS)
import cache  # noqa: E402
import make  # noqa: E402


def expert_tensors(small):
    """18,867 tensors: those of Qwen3-30B-A3B, half as wide, and experts of 768 KiB a matrix."""
    layers, experts, hidden, inner, vocabulary, head = (
        (2, 8, 64, 24, 512, 16) if small else (48, 128, 1024, 384, 151936, 128)
    )
    tensors = [
        ("model.embed_tokens.weight", [vocabulary, hidden]),
        ("model.norm.weight", [hidden]),
        ("lm_head.weight", [vocabulary, hidden]),
    ]
    shapes = {
        "input_layernorm.weight": [hidden],
        "post_attention_layernorm.weight": [hidden],
        "self_attn.q_proj.weight": [16 * head, hidden],
        "self_attn.k_proj.weight": [4 * head, hidden],
        "self_attn.v_proj.weight": [4 * head, hidden],
        "self_attn.o_proj.weight": [hidden, 16 * head],
        "self_attn.q_norm.weight": [head],
        "self_attn.k_norm.weight": [head],
        "mlp.gate.weight": [experts, hidden],
    }
    for expert in range(experts):
        shapes[f"mlp.experts.{expert}.gate_proj.weight"] = [inner, hidden]
        shapes[f"mlp.experts.{expert}.up_proj.weight"] = [inner, hidden]
        shapes[f"mlp.experts.{expert}.down_proj.weight"] = [hidden, inner]
    return tensors + [
        (f"model.layers.{layer}.{name}", shape) for layer in range(layers) for name, shape in shapes.items()
    ]


def planned_files(run, name):
    """The plan of a set of files: `big` and `many` as in h200-load, `experts` as above."""
    import numpy as np

    pattern = np.random.default_rng(20).integers(0, 1 << 64, make.BLOCK_BYTES // 8, dtype=np.uint64)
    folder = os.path.join(run.data, "small" if run.smoke else "real", name)
    if name == "big":
        parts = list(make.model_tensors(run.smoke))
    elif name == "many":
        parts = [make.many_tensors(run.smoke)]
    else:
        tensors = sorted(expert_tensors(run.smoke))
        parts = [tensors[at::4] for at in range(4)]
    paths = [
        os.path.join(folder, f"model-{number:05}-of-{len(parts):05}.safetensors") for number in range(1, 1 + len(parts))
    ]
    return [make.File(path, part, number + 1, pattern) for number, (path, part) in enumerate(zip(paths, parts))]


def files_of(run, name):
    """Paths of a set of files, and facts about them. Written if they are not there; in the page cache afterwards."""
    files = planned_files(run, name)
    folder = os.path.dirname(files[0].path)
    stamp = os.path.join(folder, "done")
    if not os.path.exists(stamp):
        make_room(folder, sum(file.file_bytes for file in files))
        written_s, synced_s = make.write(files, min(12, os.cpu_count()))
        open(stamp, "w").close()
        print(f"{folder}: written in {written_s:.1f} s, fsync in {synced_s:.1f} s more")
    paths = [file.path for file in files]
    missing = [path for path in paths if cache.cached_share([path]) < 1]
    cache.fill([(path, os.path.getsize(path)) for path in missing])
    largest = max(end - start for file in files for start, end in zip(file.starts, [*file.starts[1:], file.data_bytes]))
    facts = {
        "bytes": sum(file.data_bytes for file in files),
        "tensors": sum(len(file.names) for file in files),
        "largest": largest,
        "cached": cache.cached_share(paths),
    }
    size = f"{len(paths)} files, {facts['tensors']} tensors, {facts['bytes'] / 1e9:.2f} GB"
    run.row(
        f"{name}: {size}, share in the page cache",
        "1",
        f"{facts['cached']:.4f}",
        facts["cached"] > 0.999,
    )
    return paths, facts


def make_room(folder, needed_bytes):
    """Removes other sets of this script if the disk is too full for one more."""
    os.makedirs(folder, exist_ok=True)
    parent = os.path.dirname(folder)
    for other in sorted(os.listdir(parent)):
        if shutil.disk_usage(parent).free > needed_bytes + (2 << 30):
            return
        if os.path.join(parent, other) != folder:
            shutil.rmtree(os.path.join(parent, other))
            print(f"{other}: removed, the disk is full")
