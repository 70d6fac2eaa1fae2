"""Weights from safetensors files in the page cache: `load_file`, `iter_tensors`, transformers."""

import gc
import os
import statistics
import time
from unittest import mock

from common import Missing, Times, in_turns, needed, optional, ratio_row, same_bytes, share_row
from weight_files import cache, files_of, make_room

# --- ways to load -----------------------------------------------------------------------------------------------


def arguments_of(run):
    """Where loads go, and whose tensors they return. Torch has no tensors on a simulated device."""
    return {"device": run.pinlane_device, "framework": "np"} if run.smoke else {"device": "cuda", "framework": "pt"}


def by_load_file(run, paths):
    """One call for the folder of the files."""
    return needed("pinlane", "load_file")(os.path.dirname(paths[0]), **arguments_of(run))


def by_load_file_each(run, paths):
    """File after file, as with safetensors."""
    load_file, tensors = needed("pinlane", "load_file"), {}
    for path in paths:
        tensors.update(load_file(path, **arguments_of(run)))
    return tensors


def by_safetensors(run, paths):
    load_file, tensors = needed("safetensors.torch", "load_file"), {}
    for path in paths:
        tensors.update(load_file(path, device=run.torch_device))
    return tensors


def by_prefetch(run, paths, threads=8):
    """safetensors 0.9, as it comes: file after file. On the CPU it has no prefetch."""
    safe_open, tensors = needed("safetensors", "safe_open"), {}
    for path in paths:
        with safe_open(path, framework="pt", device=run.torch_device) as opened:
            if run.smoke:
                tensors.update((name, opened.get_tensor(name)) for name in opened.keys())
                continue
            with opened.prefetch(device="cuda:0", threads=threads) as loader:
                tensors.update(loader)
    return tensors


def by_prefetch_at_once(run, paths):
    """The same, with the loaders of all files started first."""
    safe_open, tensors = needed("safetensors", "safe_open"), {}
    if run.smoke:
        return by_prefetch(run, paths)
    opened = [safe_open(path, framework="pt", device="cuda:0") for path in paths]
    loaders = [one.prefetch(device="cuda:0", threads=8) for one in opened]
    for loader in loaders:
        tensors.update(loader)
        loader.close()
    return tensors


FIRST_WAYS = {
    "load_file": by_load_file,
    "load_file, each file": by_load_file_each,
    "safetensors": by_safetensors,
    "prefetch": by_prefetch,
}


def compare_all(run, what, ours, theirs):
    """Sees that two loads have the same names and the same bytes, all of them."""
    import torch

    def same(a, b):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            # As integers: random bytes are no equal floats where they are no numbers.
            return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.view(torch.uint8), b.view(torch.uint8))
        return tuple(a.shape) == tuple(b.shape) and same_bytes(a, b)

    wrong = sorted(set(ours) ^ set(theirs)) or [name for name in theirs if not same(ours[name], theirs[name])]
    run.check(what, not wrong, f"{len(theirs)} tensors compared" + (f", wrong: {wrong[:3]}" if wrong else ""))


# --- sections ---------------------------------------------------------------------------------------------------


def first_load(run, way, paths):
    """The first load of a process, whose CUDA context torch has made before."""
    import torch

    if way.startswith("load"):
        needed("pinlane", "load_file")
    elif way == "prefetch" and not needed("safetensors").__version__.startswith("0.9"):
        raise Missing("safetensors 0.9")
    run.start_device()
    before = 0 if run.smoke else torch.cuda.memory_allocated()
    began = time.perf_counter()
    tensors = FIRST_WAYS[way](run, paths)
    run.synchronize()
    seconds = time.perf_counter() - began
    counted = None if run.smoke else torch.cuda.memory_allocated() - before
    return {
        "seconds": seconds,
        "tensors": len(tensors),
        "allocated": counted,
        "version": needed("safetensors").__version__,
    }


def with_safetensors09(run):
    """Variables of a process that imports safetensors 0.9."""
    folder = run.settings["safetensors09"]
    if not folder or not os.path.isdir(os.path.join(folder, "safetensors")):
        raise Missing("safetensors 0.9.0rc1; name its folder with --safetensors09")
    return {"PYTHONPATH": os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])}


def prefetch(run, paths, size, rounds):
    """In a process with safetensors 0.9: our loads and its prefetch in turns."""
    if not needed("safetensors").__version__.startswith("0.9"):
        raise Missing("safetensors 0.9")
    run.start_device()
    ways = {
        "prefetch": lambda: by_prefetch(run, paths),
        "prefetch, 14 threads": lambda: by_prefetch(run, paths, 14),
        "prefetch, all files at once": lambda: by_prefetch_at_once(run, paths),
        "load_file": lambda: by_load_file(run, paths),
        "load_file, each file": lambda: by_load_file_each(run, paths),
    }
    return {name: times.figures() for name, times in in_turns(run, ways, rounds, size).items()}


def times_of(figures):
    times = Times(figures["bytes"])
    times.first, times.later, times.error = figures["first_s"], figures["later_s"], figures["error"]
    return times


def rust_loads(run, paths):
    """GB/s of the tool: the first load of its process without the context, and the median of five later ones."""
    report = run.tool("load", os.path.dirname(paths[0]), "--repeat", "6")
    if report["median_of_later"] is None:
        return {"first": None, "later": None}  # a simulated device
    times = report["runs"][0]["times"]
    first = report["job"]["bytes"] / (times["headers_ns"] + times["load_ns"])
    return {"first": first, "later": report["median_of_later"]["gb_per_s"]}


def load(run):
    """14 GB: first calls in fresh processes, later ones in turns, against both safetensors and the Rust tool."""
    import torch

    paths, facts = files_of(run, "big")
    size = facts["bytes"]
    firsts = {way: [] for way in FIRST_WAYS}
    for turn in range(run.pick(2, 1)):
        for way in FIRST_WAYS:
            with run.attempt(f"first call, {way}"):
                environment = with_safetensors09(run) if way == "prefetch" else {}
                found = run.process("first_load", {"way": way, "paths": paths}, environment)
                firsts[way].append(found["seconds"])
                run.row(
                    f"first call, {way}, process {turn + 1} (safetensors {found['version']})",
                    "",
                    f"{size / found['seconds'] / 1e9:.1f} GB/s",
                    **found,
                )
                if way.startswith("load") and not run.smoke:
                    run.check(
                        "torch.cuda.memory_allocated counts the tensors",
                        found["allocated"] >= size,
                        f"{found['allocated']} bytes",
                    )
    for way in ("load_file", "load_file, each file"):
        medians = [statistics.median(found) for found in (firsts[way], firsts["safetensors"]) if found]
        if len(medians) == 2:
            faster = medians[1] / medians[0]
            run.row(f"{way}, first call, against safetensors 0.8", "6x", f"{faster:.2f}x", faster >= 6)

    rust = []
    with run.attempt("the tool's figure"):
        rust.append(rust_loads(run, paths))
    run.start_device()
    ways = {
        "load_file, each file": lambda: by_load_file_each(run, paths),
        "load_file": lambda: by_load_file(run, paths),
        "safetensors 0.8": lambda: by_safetensors(run, paths),
    }
    times = in_turns(run, ways, run.pick(4, 1), size)
    with run.attempt("the tool's figure"):
        rust.append(rust_loads(run, paths))
    rust = [one["later"] for one in rust if one["later"]]
    for way in ("load_file", "load_file, each file"):
        ratio_row(run, f"{way}, 14 GB, later calls, against safetensors 0.8", times, way, "safetensors 0.8", 9)
        if times[way].first:
            share_row(run, f"{way}, share of the Rust figure", times[way].rate(), rust, 0.93)
    with run.attempt("load: equal to safetensors"):
        compare_all(run, "load: equal to safetensors", by_load_file(run, paths), by_safetensors(run, paths))
    gc.collect()
    if not run.smoke:
        torch.cuda.empty_cache()
    with run.attempt("against safetensors 0.9 prefetch"):
        options = {"paths": paths, "size": size, "rounds": run.pick(5, 1)}
        newer = run.process("prefetch", options, with_safetensors09(run))
        newer = {name: times_of(figures) for name, figures in newer.items()}
        for way in ("load_file", "load_file, each file"):
            for other in ("prefetch", "prefetch, 14 threads", "prefetch, all files at once"):
                ratio_row(run, f"{way} against safetensors 0.9, {other}", newer, way, other, 1.6)


def tensors(run):
    """6144 and 18,867 tensors."""
    run.start_device()
    for name, asked in (("many", 42), ("experts", 30)):
        with run.attempt(name):
            paths, facts = files_of(run, name)
            ways = {
                "load_file, each file": lambda: by_load_file_each(run, paths),
                "load_file": lambda: by_load_file(run, paths),
                "safetensors 0.8": lambda: by_safetensors(run, paths),
            }
            times = in_turns(run, ways, run.pick(5, 1), facts["bytes"])
            for way, found in times.items():
                if found.first:
                    met = found.rate() >= asked if way.startswith("load") else None
                    run.row(
                        f"{facts['tensors']} tensors, {way}",
                        f"{asked} GB/s" if met is not None else "",
                        f"{found.text()}; first {found.rate(found.first):.1f}",
                        met,
                        **found.figures(),
                    )
            compare_all(
                run,
                f"{facts['tensors']} tensors: equal to safetensors",
                by_load_file(run, paths),
                by_safetensors(run, paths),
            )


def iterate(run):
    """All tensors one by one with a window of 2 GiB, each dropped before the next is asked for."""
    import torch
    import pinlane

    paths, facts = files_of(run, "big")
    iter_tensors = needed("pinlane", "iter_tensors")
    run.start_device()
    window = run.pick(2 << 30, 4 << 20)
    held = {"own": 0}

    def iterated():
        count = 0
        for _, tensor in iter_tensors(paths, run.pinlane_device if run.smoke else "cuda", device_bytes=window):
            del tensor
            count += 1
            if count % 16 == 0:
                held["own"] = max(held["own"], pinlane.stats(run.pinlane_device)["device"])
        return count

    base = 0
    if not run.smoke:
        base = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
    assert iterated() == facts["tensors"], "not all tensors came"
    if not run.smoke:
        run.synchronize()
        # Torch counts in units of 512 bytes.
        limit = window + facts["largest"] + 512 * facts["tensors"]
        peak = torch.cuda.max_memory_allocated() - base
        run.row(
            "iter_tensors, peak of torch's memory",
            f"at most {limit / 1e9:.2f} GB (window + largest)",
            f"{peak / 1e9:.2f} GB, and at most {held['own'] / 1e9:.2f} GB of Pinlane's own",
            peak <= limit,
            peak=peak,
            limit=limit,
        )
    ways = {
        "load_file": lambda: by_load_file(run, paths),
        "iter_tensors": iterated,
        "load_file, each file": lambda: by_load_file_each(run, paths),
    }
    times = in_turns(run, ways, run.pick(6, 1), facts["bytes"])
    for other in ("load_file", "load_file, each file"):
        ratio_row(run, f"iter_tensors, 2 GiB, against {other}", times, "iter_tensors", other, 0.95)
    with run.attempt("iter_tensors: equal to safetensors"):
        expected, seen, wrong = by_safetensors(run, paths), set(), []
        for name, tensor in iter_tensors(paths, run.pinlane_device if run.smoke else "cuda", device_bytes=window):
            seen.add(name)
            if not same_bytes(tensor, expected[name]):
                wrong.append(name)
        run.check(
            "iter_tensors: equal to safetensors", not wrong and seen == set(expected), f"{len(seen)} tensors compared"
        )


# --- transformers -----------------------------------------------------------------------------------------------


def llama(run):
    """A folder with a random Llama of 14 GB, made on the GPU, and its files."""
    import torch

    configuration = needed("transformers", "LlamaConfig")
    model_class = needed("transformers", "LlamaForCausalLM")
    folder = os.path.join(run.data, "small" if run.smoke else "real", "llama")
    if not os.path.exists(os.path.join(folder, "done")):
        make_room(folder, run.pick(14 << 30, 64 << 20))
        sizes = run.pick(
            {"vocab_size": 64000},
            {
                "vocab_size": 512,
                "hidden_size": 64,
                "intermediate_size": 128,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "num_key_value_heads": 4,
                "head_dim": 16,
            },
        )
        torch.manual_seed(17)
        with torch.device(run.torch_device):
            model = model_class(configuration(**sizes)).to(torch.bfloat16)
        model.save_pretrained(folder, max_shard_size="5GB")
        del model
        gc.collect()
        if not run.smoke:
            torch.cuda.empty_cache()  # nobody's first load finds memory prepared
        open(os.path.join(folder, "done"), "w").close()
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".safetensors"))
    cache.fill([(path, os.path.getsize(path)) for path in paths if cache.cached_share([path]) < 1])
    return folder, paths, sum(os.path.getsize(path) for path in paths)


def transformers(run):
    """`from_pretrained` of transformers, and with our loads under it."""
    import torch

    model_class = needed("transformers", "LlamaForCausalLM")
    configuration = needed("transformers", "LlamaConfig")
    run.start_device()
    folder, paths, size = llama(run)
    run.row(
        "a random Llama",
        "",
        f"{len(paths)} files, {size / 1e9:.2f} GB, share in the page cache {cache.cached_share(paths):.4f}; "
        f"accelerate: {'yes' if optional('accelerate') else 'no, loaded on the CPU first'}",
    )
    # With a device map transformers loads to the GPU itself; it asks for accelerate.
    placed = {"device_map": {"": run.torch_device if run.smoke else 0}} if optional("accelerate") else {}

    def own():
        model = model_class.from_pretrained(folder, dtype=torch.bfloat16, **placed)
        return model.to(run.torch_device)

    def with_state_dict():
        load_file = needed("pinlane", "load_file")
        state = load_file(folder, run.torch_device, framework="pt")
        config = configuration.from_pretrained(folder)
        model = model_class.from_pretrained(None, config=config, state_dict=state, dtype=torch.bfloat16, **placed)
        return model.to(run.torch_device)

    def with_safe_open():
        with mock.patch("transformers.modeling_utils.safe_open", needed("pinlane", "safe_open")):
            return own()

    ways = {"transformers": own, "state_dict of load_file": with_state_dict, "its safe_open replaced": with_safe_open}
    tokens = torch.arange(1, 33, device=run.torch_device).reshape(1, -1)
    logits = {}

    def compute(name, model):
        with torch.no_grad():
            logits[name] = model(tokens).logits.float().cpu()

    times = in_turns(run, ways, run.pick(3, 1), size, compute)
    expected = logits.get("transformers")
    for name in ways:
        if name == "transformers":
            run.row("transformers' own from_pretrained", "", times[name].text(), **times[name].figures())
            continue
        ratio_row(run, f"from_pretrained, {name}", times, name, "transformers", 4)
        if name in logits:
            finite = bool(torch.isfinite(logits[name]).all())
            run.check(
                f"from_pretrained, {name}: outputs equal",
                finite and torch.equal(logits[name], expected),
                f"finite: {finite}",
            )
