#!/bin/bash
# What was run on the H200, in the folder of the binaries:
#   pinlane   cargo build --release -p pinlane-cli
#   load      cargo bench -p pinlane --bench load --no-run
# OUT is where the outputs go. DATA is a folder on the disk to measure, with 19 GB free.
# safetensors 0.9.0rc1's wheel is unpacked beside this script, or in NEW (not kept with it):
#   pip download safetensors==0.9.0rc1 --no-deps --python-version 3.12 --only-binary=:all:
#   python3 -m zipfile -e safetensors-0.9.0rc1-*.whl safetensors09
#
# The order matters for the page cache: files are written into it, everything on cached files runs before
# anything drops them, and what is measured cold or half cached has its state set again just before.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
DATA=${DATA:-/tmp/pinlane-load}
NEW=${NEW:-$here/safetensors09}
export PYTHONUNBUFFERED=1
export XDG_CACHE_HOME=$OUT/cache
began=$SECONDS
mkdir -p "$DATA"
: > $OUT/load.txt; : > $OUT/cold.txt
step() { echo "== $* (at $((SECONDS - began)) s)"; }

{ nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.width.current --format=csv
  lscpu | grep -E "Model name|^CPU\(s\)|L2|L3|NUMA node"
  uname -r; free -g; df -hT "$DATA"; cat /sys/kernel/mm/transparent_hugepage/enabled
  python3 -c "import sys; from importlib.metadata import version as v; print('Python', sys.version.split()[0], *(f'{p} {v(p)}' for p in ('torch', 'safetensors', 'numpy')))"
} > $OUT/machine.txt 2>&1

step make | tee $OUT/make.txt
timeout 120 python3 $here/make.py "$DATA" 2>&1 | tee -a $OUT/make.txt || exit 1
# Nothing to do after make.py wrote them; reads them where an earlier call had done so and dropped them since.
timeout 60 python3 $here/cache.py fill "$DATA/big" "$DATA/many" 2>&1 | tee -a $OUT/make.txt

# --- Cached: pinlane, then the peers, then pinlane again --------------------------------------------------------
cached_pinlane() {
  step "pinlane, cached"
  # PINLANE >>> the first call of a fresh process, five later ones with the tensors of all earlier ones kept,
  # five right after those of the one before were freed, and five where the device keeps the memory of those; two
  # processes a set
  for set in big many; do
    for process in 1 2; do echo -n "$set "; timeout 30 ./load once "$DATA/$set" 2>&1; done
  done
  # PINLANE <<<
}
cached_pinlane | tee -a $OUT/load.txt
{ step "safetensors, cached"
  timeout 150 python3 $here/safetensors_peers.py "$DATA" --new "$NEW" 2>&1; } | tee $OUT/peers.txt
cached_pinlane | tee -a $OUT/load.txt
{ step "freed memory"
  timeout 30 python3 $here/freed.py 2>&1; } | tee $OUT/freed.txt
{ step "calibrate"
  timeout 40 ./pinlane --device cuda calibrate --output $OUT/profile.toml 2>&1; } | tee $OUT/calibrate.txt
{ step "pinlane, the tool"
  # PINLANE >>> plain, then: what is on the GPU is what the files hold
  for set in big many; do
    timeout 30 ./pinlane --device cuda load "$DATA/$set" 2>&1
    timeout 60 ./pinlane --device cuda load "$DATA/$set" --verify 2>&1
  done
  # PINLANE <<<
} | tee -a $OUT/load.txt

# --- Images from memory -----------------------------------------------------------------------------------------
{ step "DataLoader"
  timeout 70 python3 $here/dataloader.py --kernel-ms 20 2>&1; } | tee $OUT/dataloader.txt
{ step "pinlane feed"
  # PINLANE >>> u8 3x224x224 from memory, batches of 256, shuffled; then with a kernel of 20 ms a batch
  timeout 30 ./pinlane --device cuda feed synthetic 2>&1
  timeout 30 ./pinlane --device cuda feed synthetic --kernel 20ms 2>&1
  # PINLANE <<<
} | tee $OUT/feed.txt

# --- Cold: the disk alone and pinlane in turns, on the same files -----------------------------------------------
{ step "O_DIRECT alone"
  timeout 120 python3 $here/direct.py "$DATA/big" --seconds 3 2>&1; } | tee -a $OUT/cold.txt
best=$(sed -n 's/^direct best: .* with //p' $OUT/cold.txt | tail -1)
best=${best:---threads 8 --mib 4}
cold_plain() { timeout 60 python3 $here/direct.py "$DATA/big" --whole $best 2>&1 | grep -v "^direct best"; }
cold_pinlane() {
  timeout 30 python3 $here/cache.py drop "$DATA/big" 2>&1
  # PINLANE >>>
  IO=auto timeout 60 ./load io "$DATA/big" 2>&1
  # PINLANE <<<
  timeout 30 python3 $here/cache.py status "$DATA/big" 2>&1
}
# The disk changes within seconds: many turns, and neither is always the first of its turn.
for turn in 1 2 3 4 5 6; do
  step "cold, turn $turn"
  if ((turn % 2)); then cold_plain; cold_pinlane; else cold_pinlane; cold_plain; fi
done | tee -a $OUT/cold.txt
python3 $here/ratio.py $OUT/cold.txt 2>&1 | tee -a $OUT/cold.txt

# --- Half cached: three ways in turns, the state set before each -------------------------------------------------
for turn in 1 2; do
  for io in auto direct buffered; do
    step "half cached, $io, turn $turn"
    timeout 60 python3 $here/cache.py half "$DATA/big" 2>&1
    # PINLANE >>>
    IO=$io timeout 60 ./load io "$DATA/big" 2>&1
    # PINLANE <<<
  done
done | tee -a $OUT/cold.txt
step end | tee -a $OUT/cold.txt
