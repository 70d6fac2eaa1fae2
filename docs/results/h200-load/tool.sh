#!/bin/bash
# The tool alone, on files of make.py in the page cache: OUT, DATA and the binary as for run.sh.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
DATA=${DATA:-/tmp/pinlane-load}
export XDG_CACHE_HOME=$OUT/cache
mkdir -p "$DATA"
python3 $here/make.py "$DATA" > /dev/null || exit 1
{
  ./pinlane --device cuda calibrate --output $OUT/tool.toml 2>&1 | grep -E "GB/s|both"
  # The first call of a process, three times; five loads in one process; every byte.
  for process in 1 2 3; do ./pinlane --device cuda load "$DATA/big" 2>&1; done
  ./pinlane --device cuda load "$DATA/big" --repeat 6 2>&1
  ./pinlane --device cuda load "$DATA/many" 2>&1
  ./pinlane --device cuda load "$DATA/many" --repeat 6 2>&1
  for set in big many; do ./pinlane --device cuda load "$DATA/$set" --verify 2>&1; done
} | tee $OUT/tool.txt
