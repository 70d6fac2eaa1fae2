#!/usr/bin/env bash
# Builds the wheels in a manylinux_2_28 container: one for every Python from 3.11, one for the
# free-threaded 3.14. They go to dist/.
set -euo pipefail
cd "$(dirname "$0")/.."
bytes_max=6000000
/opt/python/cp311-cp311/bin/python -m venv /tmp/maturin
/tmp/maturin/bin/pip install 'maturin>=1.9,<2' auditwheel
for python in cp311-cp311 cp314-cp314t; do
    /tmp/maturin/bin/maturin build --release --locked --strip --compatibility manylinux_2_28 \
        --interpreter "/opt/python/$python/bin/python" --out dist
done
ls -l dist
for tags in cp311-abi3 cp314-cp314t; do
    wheel=$(ls dist/pinlane-*-"$tags"-manylinux_2_28_"$(uname -m)".whl)
    bytes=$(stat -c %s "$wheel")
    if [ "$bytes" -gt "$bytes_max" ]; then
        echo "error: $wheel has $bytes bytes, more than $bytes_max" >&2
        exit 1
    fi
    /tmp/maturin/bin/auditwheel show "$wheel"
done
# Each wheel is installed and imported by the Python that it is for.
for python in cp311-cp311 cp314-cp314t; do
    "/opt/python/$python/bin/python" -m venv "/tmp/try-$python"
    "/tmp/try-$python/bin/pip" install --no-index --no-deps --find-links dist pinlane
    "/tmp/try-$python/bin/python" -c 'import pinlane'
done
