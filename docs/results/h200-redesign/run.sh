#!/bin/bash
# The library before and after its redesign, side by side on the H200 and in turns. `old` and `new` hold the binaries
# of both trees (cargo build --release -p pinlane-cli; cargo bench -p pinlane --no-run). OUT is where the outputs go,
# DATA holds the files of ../h200-load/make.py.
set -u
./new/pinlane --device cuda selftest > $OUT/selftest.txt 2>&1
for round in 1 2; do for tree in old new; do ./$tree/loader rates >> $OUT/loader-$tree.txt 2>&1; done; done
for round in 1 2; do for tree in old new; do ./$tree/express copies >> $OUT/express-$tree.txt 2>&1; done; done
for round in 1 2; do for tree in old new; do ./$tree/pipeline rates >> $OUT/pipeline-$tree.txt 2>&1; done; done
./new/pinlane --device cuda overlap > $OUT/overlap.txt 2>&1
# On another machine of the same kind.
for round in 1 2; do for tree in old new; do for set in big many; do ./$tree/load once $DATA/$set >> $OUT/load-$tree.txt 2>&1; done; done; done
for round in 1 2 3; do for tree in new old; do ./$tree/express copies >> $OUT/express-$tree.txt 2>&1; done; done
# docs/guide/06-overlap.rs with Device::cuda(0), before it had six chunks on three streams.
./overlap > $OUT/recorder.txt 2>&1
