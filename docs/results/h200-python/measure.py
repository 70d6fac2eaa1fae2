#!/usr/bin/env python3
"""Measures the Python package on a GPU against torch, CuPy, safetensors and transformers.

    measure.py [--smoke] [--out DIR] [--name NAME] [--data DIR] [--tool BINARY] [--safetensors09 DIR] [SECTION…]

Every section is a process of its own; what one of them does to the GPU or to itself does not reach the others. Rows
are written as they are found, so that a section that is killed keeps what it had. NAME.txt in DIR is the table,
NAME.json has all figures, the tracebacks and the machine.

`--smoke` runs everything with tiny sizes on `sim:h200` and with torch on the CPU. That tries the script and measures
nothing.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time

import checks
import common
import copies
import loaders
import weights

SECTIONS = {
    "upload": copies.upload,
    "download": copies.download,
    "latency": copies.latency,
    "empty": copies.empty,
    "load": weights.load,
    "tensors": weights.tensors,
    "iterate": weights.iterate,
    "transformers": weights.transformers,
    "prefetcher": loaders.prefetcher,
    "images": loaders.images,
    "sharing": checks.sharing,
    "threads": checks.threads,
    "dropped": checks.dropped,
    "capture": checks.capture,
}

# Run by sections, in processes of their own. They return something.
PARTS = {
    "cold_pinned": copies.cold_pinned,
    "first_load": weights.first_load,
    "prefetch": weights.prefetch,
    "prefetcher_rates": loaders.prefetcher_rates,
    "shared_with": checks.shared_with,
    "captured": checks.captured,
}


def output(*words):
    """What a command prints."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=20)
        return (done.stdout or done.stderr).strip()
    except (OSError, subprocess.SubprocessError) as error:
        return f"{words[0]}: {error}"


def gpu_load():
    """How busy the GPU is, and its clocks."""
    return output(
        "nvidia-smi", "--query-gpu=utilization.gpu,memory.used,clocks.sm,temperature.gpu", "--format=csv,noheader"
    )


def machine():
    """What this machine is, and how busy."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {"python": platform.python_version()}
    for name in (
        "pinlane",
        "torch",
        "numpy",
        "cupy-cuda12x",
        "cupy-cuda13x",
        "jax",
        "numba",
        "safetensors",
        "transformers",
        "accelerate",
    ):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            pass
    query = "name,driver_version,pcie.link.gen.current,pcie.link.width.current,utilization.gpu,memory.used"
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": versions,
        "kernel": platform.release(),
        "cpu": next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), ""),
        "cpus": len(os.sched_getaffinity(0)),
        "memory": output("free", "-g"),
        "shm": output("df", "-h", "/dev/shm"),
        "load": os.getloadavg(),
        "gpu": output("nvidia-smi", f"--query-gpu={query}", "--format=csv"),
        "gpu_processes": output("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"),
    }


def run_section(name, settings, limit_s):
    """Runs a section in a new process. Returns its rows and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "results")
        log = os.path.join(folder, "log")
        command = [sys.executable, os.path.abspath(__file__), "--section", name, "--results", results]
        command += ["--settings", json.dumps(settings)]
        began, load, gpu = time.perf_counter(), os.getloadavg(), gpu_load()
        with open(log, "w") as opened:
            # A group of its own, so that its workers end with it.
            process = subprocess.Popen(command, stdout=opened, stderr=opened, start_new_session=True)
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                status = f"killed after {limit_s:.0f} s"
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        rows = [json.loads(line) for line in open(results)] if os.path.exists(results) else []
        with open(log) as opened:
            said = opened.read()[-8000:]
    ended = {
        "section": name,
        "status": status,
        "seconds": time.perf_counter() - began,
        "load_before": load,
        "load_after": os.getloadavg(),
        "gpu_before": gpu,
        "gpu_after": gpu_load(),
        "output": said,
        "rows": rows,
    }
    if status != 0:
        words = f"the section ended with {status}; {said.strip().splitlines()[-1][:160] if said.strip() else ''}"
        rows.append({"what": name, "asked": "", "measured": words, "met": False, "figures": {}})
    return ended


def table(report):
    """The text of a report."""
    machine, lines = report["machine"], []
    if report["settings"]["smoke"]:
        lines.append("SMOKE RUN: tiny sizes, a simulated GPU, torch on the CPU. No figure here means anything.")
    lines.append(
        f"{machine['date']}, {machine['cpus']} CPUs ({machine['cpu']}), Linux {machine['kernel']}, "
        f"load {machine['load'][0]:.1f}"
    )
    lines.append(", ".join(f"{name} {version}" for name, version in machine["versions"].items()))
    lines += machine["gpu"].splitlines()
    for section in report["sections"]:
        lines.append("")
        load = f"load {section['load_before'][0]:.1f} to {section['load_after'][0]:.1f}"
        lines.append(f"== {section['section']} ({section['seconds']:.0f} s, {load})")
        lines.append("what | asked | measured | met")
        for row in section["rows"]:
            met = {True: "yes", False: "NO", None: "-"}[row["met"]]
            lines.append(f"{row['what']} | {row['asked']} | {row['measured']} | {met}")
    return "\n".join(lines) + "\n"


def write(report, out, name):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, f"{name}.json"), "w") as file:
        json.dump(report, file, indent=1, default=str)
    with open(os.path.join(out, f"{name}.txt"), "w") as file:
        file.write(table(report))


def run_part(arguments):
    """A part in this process: its value, or what is missing, goes to the file of results."""
    run = common.Run(json.loads(arguments.settings), os.devnull)
    try:
        returned = {"value": PARTS[arguments.part](run, **json.loads(arguments.options))}
    except common.Missing as missing:
        returned = {"missing": str(missing)}
    with open(arguments.results, "w") as file:
        json.dump(returned, file, default=str)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all of them if none is named"
    )
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--out", default="out")
    parser.add_argument("--name", default="measure", help="name of the two files in the folder")
    parser.add_argument("--data", default="/tmp/pinlane-python", help="folder for files; 50 GB in a real run")
    parser.add_argument("--tool", help="release binary `pinlane`; else the command of the package")
    parser.add_argument("--safetensors09", help="folder in which safetensors 0.9.0rc1 is unpacked")
    parser.add_argument("--section-s", type=float, default=180, help="seconds a section may take")
    parser.add_argument("--limit-s", type=float, default=570, help="seconds for all of them")
    for hidden in ("--section", "--part", "--settings", "--options", "--results"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        return run_part(arguments)
    if arguments.section:
        run = common.Run(json.loads(arguments.settings), arguments.results)
        with run.attempt(arguments.section):
            SECTIONS[arguments.section](run)
        return None

    names = arguments.sections or list(SECTIONS)
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        parser.error(f"unknown: {' '.join(unknown)}; known: {' '.join(SECTIONS)}")
    settings = {"smoke": arguments.smoke, "data": os.path.abspath(arguments.data), "section_s": arguments.section_s}
    for name in ("tool", "safetensors09"):
        path = getattr(arguments, name)
        settings[name] = path and os.path.abspath(path)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the section's processes end, too
    began = time.perf_counter()
    report = {"settings": settings, "machine": machine(), "sections": []}
    for name in names:
        left = arguments.limit_s - (time.perf_counter() - began)
        if left < 20:
            row = {"what": name, "asked": "", "measured": "not run: no time left", "met": None, "figures": {}}
            load = os.getloadavg()
            section = {"section": name, "seconds": 0, "load_before": load, "load_after": load, "rows": [row]}
        else:
            section = run_section(name, settings, min(arguments.section_s + 20, left))
        report["sections"].append(section)
        write(report, arguments.out, arguments.name)
        print(table({**report, "sections": [section]}).split("\n\n", 1)[1], flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main())
