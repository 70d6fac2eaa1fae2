#!/usr/bin/env python3
"""Of the turns in cold.txt: plain O_DIRECT reading of the whole files against loading them.

    ratio.py cold.txt
"""

import re
import statistics
import sys

turns = re.split(r"== cold, turn \d+.*\n", open(sys.argv[1]).read().split("== half")[0])[1:]
plain = [float(re.search(r"GB in ([\d.]+) s\)", turn)[1]) for turn in turns]
loads = [float(re.search(r"GB in ([\d.]+) ms", turn)[1]) / 1e3 for turn in turns]
each = [a / b for a, b in zip(plain, loads)]
print("turn by turn, loading has of the rate of plain reading:", " ".join(f"{ratio:.2f}" for ratio in each))
for name, of in ("median", statistics.median), ("sum", sum):
    print(f"by the {name} of {len(turns)} times: {of(plain):.2f} s plain, {of(loads):.2f} s loading: {of(plain) / of(loads):.3f}")
