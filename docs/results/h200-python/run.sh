#!/bin/bash
# One part of the measurements on a GPU; README.md says how the package gets there. Each part ends within 600 s.
#   run.sh copies|weights|models|loaders|checks
# OUT is where PART.txt and PART.json go. PYTHONPATH has the unpacked release wheel. Optional: DATA (a folder with 50 GB
# free), TOOL (a release binary `pinlane`), SAFETENSORS09 (a folder with safetensors 0.9.0rc1 unpacked), and a folder
# with transformers in PYTHONPATH where it is not installed.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONUNBUFFERED=1
case ${1:-} in
  copies)  sections="upload download latency empty" ;;
  weights) sections="load iterate tensors" ;;
  models)  sections="transformers" ;;
  loaders) sections="prefetcher images" ;;
  checks)  sections="sharing threads dropped capture" ;;
  *) echo "usage: OUT=DIR $0 copies|weights|models|loaders|checks" >&2; exit 2 ;;
esac
exec timeout 595 python3 "$here/measure.py" --out "$OUT" --name "$1" --data "${DATA:-/tmp/pinlane-python}" \
  ${TOOL:+--tool "$TOOL"} ${SAFETENSORS09:+--safetensors09 "$SAFETENSORS09"} $sections
