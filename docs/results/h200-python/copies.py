"""Copies of arrays, and pinned memory: `to_device`, `to_host`, `empty`."""

import statistics
import time

from common import Missing, in_turns, optional, ratio, ratio_row, same_bytes, share_row

TUNED = "pinned_use_cuda_host_register:True,pinned_num_register_threads:8"


def numbers(elements):
    """Random float32 numbers in ordinary memory, all of it touched."""
    import numpy as np

    block = np.random.default_rng(17).random(min(elements, 1 << 24), dtype=np.float32)
    x = np.empty(elements, dtype=np.float32)
    for start in range(0, elements, len(block)):
        part = x[start : start + len(block)]
        np.add(block[: len(part)], np.float32(start >> 24), out=part)
    return x


def rust_rate(run, route, size):
    """GB/s of the express lane by the tool, from or to ordinary memory and device memory that is there already."""
    words = ("compare", "--size", str(size), "--repeat", "9")
    rows = run.tool(*words)["rows"]
    return next(row[route]["gb_per_s"] for row in rows if row["memory"] == "express")


def upload(run):
    """1 GiB of touched ordinary memory to the GPU."""
    import torch
    import pinlane

    run.start_device()
    cupy = None if run.smoke else optional("cupy")
    x = numbers(run.pick(1 << 28, 1 << 18))
    tensor = torch.from_numpy(x)
    device = pinlane.device(run.pinlane_device)
    out = pinlane.to_device(x, device) if run.smoke else torch.empty(x.shape, device="cuda")
    rust = []
    with run.attempt("the tool's figure"):
        rust.append(rust_rate(run, "h2d", x.nbytes))
    ways = {
        "to_device(numpy)": lambda: pinlane.to_device(x, device),
        "torch.from_numpy(x).cuda()": lambda: run.torch_upload(torch.from_numpy(x)),
        "to_device(numpy, out=tensor)": lambda: pinlane.to_device(x, out=out),
        "to_device(tensor)": lambda: pinlane.to_device(tensor, device),
    }
    if cupy:
        ways["cupy.asarray(x)"] = lambda: cupy.asarray(x)
    equal = {}
    compare = lambda name, result: equal.update({name: same_bytes(result, x)})
    times = in_turns(run, ways, run.pick(9, 2), x.nbytes, compare, pause_s=0.03)
    with run.attempt("the tool's figure"):
        rust.append(rust_rate(run, "h2d", x.nbytes))
    run.check("upload: all results equal", all(equal.values()), str(equal))
    for name in ways:
        run.row(
            f"{name}, first call, then later ones",
            "",
            f"{times[name].rate(times[name].first):.1f} GB/s, then {times[name].text()}"
            if times[name].first
            else "failed",
            **times[name].figures(),
        )
    ratio_row(
        run, "to_device(numpy, 1 GiB) against torch", times, "to_device(numpy)", "torch.from_numpy(x).cuda()", 5.5
    )
    ratio_row(
        run,
        "the same with out= against torch",
        times,
        "to_device(numpy, out=tensor)",
        "torch.from_numpy(x).cuda()",
        5.5,
    )
    ratio_row(run, "to_device(tensor) against torch", times, "to_device(tensor)", "torch.from_numpy(x).cuda()", 5.5)
    ratio_row(run, "to_device(numpy, 1 GiB) against CuPy", times, "to_device(numpy)", "cupy.asarray(x)", 5.5)
    for name in ("to_device(numpy)", "to_device(numpy, out=tensor)"):
        if times[name].first:
            share_row(run, f"{name}, share of the Rust figure", times[name].rate(), rust, 0.95)
    if not run.smoke:
        before = torch.cuda.memory_allocated()
        kept = pinlane.to_device(tensor, device)
        grown = torch.cuda.memory_allocated() - before
        run.check("torch.cuda.memory_allocated counts to_device(tensor)", grown >= kept.nbytes, f"{grown} bytes")


def download(run):
    """1 GiB from the GPU, into touched memory and into fresh memory."""
    import numpy as np
    import torch
    import pinlane

    run.start_device()
    cupy = None if run.smoke else optional("cupy")
    x = numbers(run.pick(1 << 28, 1 << 18))
    device = pinlane.device(run.pinlane_device)
    on_gpu = run.torch_upload(torch.from_numpy(x))
    ours = pinlane.to_device(x, device) if run.smoke else on_gpu
    out = np.ones_like(x)  # touched
    into = torch.from_numpy(out)
    ways = {
        "to_host(out=touched)": lambda: pinlane.to_host(ours, out=out),
        "torch, .copy_() into the same buffer": lambda: into.copy_(on_gpu),
        "to_host(), fresh memory": lambda: pinlane.to_host(ours),
        "torch .cpu(), fresh memory": lambda: on_gpu.clone() if run.smoke else on_gpu.cpu(),
    }
    if cupy:
        of_cupy = cupy.from_dlpack(on_gpu)
        ways["CuPy .get(out=touched)"] = lambda: of_cupy.get(out=out)
    equal = {}

    def compare(name, result):
        equal[name] = same_bytes(result, x)
        out.fill(1)  # what the next way has to overwrite

    rust = []
    with run.attempt("the tool's figure"):
        rust.append(rust_rate(run, "d2h", x.nbytes))
    times = in_turns(run, ways, run.pick(9, 2), x.nbytes, compare)
    with run.attempt("the tool's figure"):
        rust.append(rust_rate(run, "d2h", x.nbytes))
    run.check("download: all results equal", all(equal.values()), str(equal))
    for name in ways:
        first = times[name].first
        run.row(
            f"{name}, first call, then later ones",
            "",
            f"{times[name].rate(first):.1f} GB/s, then {times[name].text()}" if first else "failed",
            **times[name].figures(),
        )
    ratio_row(
        run,
        "to_host(1 GiB, out=touched) against .cpu() into the same buffer",
        times,
        "to_host(out=touched)",
        "torch, .copy_() into the same buffer",
        2.8,
    )
    ratio_row(
        run, "to_host(1 GiB, out=touched) against CuPy", times, "to_host(out=touched)", "CuPy .get(out=touched)", 2.8
    )
    fresh = ratio(times, "to_host(), fresh memory", "torch .cpu(), fresh memory")
    run.row("to_host() into fresh memory against .cpu()", "", f"{fresh:.2f}x" if fresh else "no figure")
    if times["to_host(out=touched)"].first:
        share_row(run, "to_host(out=touched), share of the Rust figure", times["to_host(out=touched)"].rate(), rust, 0.95)


def latency(run):
    """4 KiB, call by call; what a call returns is dropped inside the clock."""
    import torch
    import pinlane

    run.start_device()
    x = numbers(1024)
    tensor, device = torch.from_numpy(x), pinlane.device(run.pinlane_device)
    target = torch.empty(x.shape, device=run.torch_device)
    out = pinlane.to_device(x, device) if run.smoke else target
    name = run.pinlane_device
    pairs = {
        "numpy": (lambda: pinlane.to_device(x, device), lambda: run.torch_upload(torch.from_numpy(x))),
        "numpy, device by name": (lambda: pinlane.to_device(x, name), lambda: run.torch_upload(torch.from_numpy(x))),
        "tensor": (lambda: pinlane.to_device(tensor, device), lambda: run.torch_upload(tensor)),
        "into a tensor": (lambda: pinlane.to_device(tensor, out=out), lambda: target.copy_(tensor)),
    }
    if not run.smoke:
        pairs["numpy, default device"] = (lambda: pinlane.to_device(x), lambda: torch.from_numpy(x).cuda())
    clock, calls, rounds = time.perf_counter_ns, run.pick(500, 10), run.pick(20, 2)
    assert same_bytes(pinlane.to_device(x, device), x), "4 KiB differ"

    def block(function, wait):
        found = []
        for _ in range(calls):
            began = clock()
            function()
            if wait:
                run.synchronize()
            found.append(clock() - began)
        return statistics.median(found) / 1e3

    for what, (ours, theirs) in pairs.items():
        for wait in (False, True):
            medians = ([], [])
            for turn in range(rounds):
                for which in (0, 1) if turn % 2 == 0 else (1, 0):
                    medians[which].append(block((ours, theirs)[which], wait))
            us = [statistics.median(of) for of in medians]
            after = ", with a synchronise after each" if wait else ""
            words = (
                f"{us[0] - us[1]:+.2f} µs: {us[0]:.2f} ({min(medians[0]):.2f} to {max(medians[0]):.2f}) against "
                f"{us[1]:.2f} ({min(medians[1]):.2f} to {max(medians[1]):.2f})"
            )
            run.row(
                f"to_device of 4 KiB, {what}{after}",
                "at most +3 µs of torch's",
                words,
                us[0] - us[1] <= 3,
                ours_us=medians[0],
                torch_us=medians[1],
            )


# --- pinned memory, cold ------------------------------------------------------------------------------------------


def cold_pinned(run, way):
    """In a fresh process: 1 GiB of pinned memory, the first that is asked for; then whether copies from it are fast."""
    import torch
    import pinlane

    elements = run.pick(1 << 28, 1 << 16)
    run.start_device()
    if way == "cupy":
        cupyx = optional("cupyx")
        if cupyx is None:
            raise Missing("cupyx")
        import cupy

        cupy.zeros(1)  # CuPy's own start is not counted
        allocate = lambda: torch.from_numpy(cupyx.empty_pinned((elements,), "f4"))
    elif way == "torch":
        allocate = lambda: torch.empty(elements, dtype=torch.float32, pin_memory=not run.smoke)
    else:
        if way == "pinlane, device open":
            pinlane.device(run.pinlane_device)
        allocate = lambda: torch.from_numpy(pinlane.empty((elements,), "f4", device=run.pinlane_device))
    began = time.perf_counter()
    memory = allocate()
    cold_s = time.perf_counter() - began
    began = time.perf_counter()
    second = allocate()
    second_s = time.perf_counter() - began
    memory.fill_(1.5)
    copies_s, target = [], torch.empty(elements, device=run.torch_device)
    for _ in range(4):
        run.synchronize()
        began = time.perf_counter()
        target.copy_(memory, non_blocking=True)
        run.synchronize()
        copies_s.append(time.perf_counter() - began)
    right = bool((target == 1.5).all()) and second.data_ptr() != memory.data_ptr()
    pinned = bool(memory.is_pinned()) if not run.smoke else None
    return {
        "cold_s": cold_s,
        "second_s": second_s,
        "copy_gb_per_s": memory.nbytes / min(copies_s) / 1e9,
        "right": right,
        "torch_says_pinned": pinned,
        "first_byte_aligned": memory.data_ptr() % 4096 == 0,
    }


def empty(run):
    """Cold pinned memory, each time in a fresh process whose CUDA context torch has made before."""
    ways = {
        "pinlane, device open": ("pinlane, device open", {}),
        "pinlane, device opened by the call": ("pinlane", {}),
        "torch": ("torch", {}),
        "torch tuned": ("torch", {"PYTORCH_CUDA_ALLOC_CONF": TUNED}),
        "cupy": ("cupy", {}),
    }
    found = {name: [] for name in ways}
    missing = set()
    for turn in range(run.pick(5, 1)):
        for name, (way, environment) in ways.items():
            if name in missing or not run.has_time(15):
                continue
            with run.attempt(f"empty, {name}"):
                try:
                    found[name].append(run.process("cold_pinned", {"way": way}, environment))
                except Exception:
                    missing.add(name)
                    raise
    for name, all_of in found.items():
        if all_of:
            cold = [one["cold_s"] * 1e3 for one in all_of]
            second = statistics.median(one["second_s"] for one in all_of) * 1e3
            rate = statistics.median(one["copy_gb_per_s"] for one in all_of)
            run.row(
                f"1 GiB pinned, cold, {name}",
                "",
                f"{statistics.median(cold):.1f} ms ({min(cold):.1f} to {max(cold):.1f}; "
                f"a second one {second:.1f}); copies {rate:.1f} GB/s",
                all=all_of,
            )
    for name in ("pinlane, device open", "pinlane, device opened by the call"):
        for other, asked in (("torch", 8), ("torch tuned", 2)):
            if found[name] and found[other]:
                times = [statistics.median(one["cold_s"] for one in found[which]) for which in (name, other)]
                faster = times[1] / times[0]
                run.row(
                    f'empty((1<<28,), "f4"), cold ({name}), against {other}',
                    f"{asked}x",
                    f"{faster:.2f}x",
                    faster >= asked,
                )
    everything = [one for all_of in found.values() for one in all_of]
    run.check("pinned memory: contents right after a copy", everything and all(one["right"] for one in everything))
