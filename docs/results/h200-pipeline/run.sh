#!/bin/bash
# What was run on the H200, in the folder of the binaries:
#   pipeline   cargo bench -p pinlane --bench pipeline --no-run
#   pinlane    cargo build --release -p pinlane-cli
# OUT is where the outputs go.
export XDG_CACHE_HOME=$OUT/cache
timeout 220 ./pipeline 2>&1 | tee $OUT/pipeline.txt
timeout 30 ./pinlane --device cuda calibrate --output $OUT/profile.toml 2>&1 | tee $OUT/calibrate.txt
timeout 30 ./pinlane plan --in 1GiB --out 1GiB --kernel 4ms 2>&1 | tee $OUT/plan.txt
timeout 60 ./pinlane --device cuda overlap --size 1GiB --kernel 4ms --svg $OUT/overlap.svg --html $OUT/overlap.html --trace $OUT/overlap.json 2>&1 | tee $OUT/overlap.txt
timeout 90 ./pinlane --device sim:h200 overlap --size 1GiB --kernel 4ms 2>&1 | tee $OUT/overlap-sim.txt
timeout 60 ./pinlane --device cuda selftest 2>&1 | tail -3 | tee $OUT/selftest.txt
