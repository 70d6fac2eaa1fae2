#!/bin/bash
# What was run on the H200, in the folder of the binary:
#   pinlane    cargo build --release -p pinlane-cli
# OUT is where the outputs go.
here=$(dirname "$0")
export XDG_CACHE_HOME=$OUT/cache
nvcc -O2 -o independent $here/independent.cu -lcuda
./pinlane --device cuda doctor > $OUT/doctor.txt
./pinlane --device cuda --json doctor > $OUT/doctor.json
./pinlane --device cuda compare --repeat 15 --svg $OUT/compare.svg --html $OUT/compare.html | tee $OUT/compare.txt
time ./pinlane --device cuda --json bench --csv $OUT/bench.csv --html $OUT/bench.html --svg $OUT/bench.svg > $OUT/bench.json
python3 $here/independent.py | tee $OUT/independent.txt
./pinlane --device cuda bench --time 8s --against $OUT/bench.json > $OUT/bench-again.txt
./pinlane --device cuda dot --repeat 100 | tee $OUT/dot.txt
./pinlane --device cuda dot --kernel atomic | tee $OUT/dot-atomic.txt
for n in 0 1 100000 100003; do ./pinlane --device cuda dot -n $n; done | tee $OUT/dot-sizes.txt
./pinlane --device cuda --json dot > $OUT/dot.json
./pinlane --device cuda selftest | tail -2 | tee $OUT/selftest.txt
# Ctrl-C in the middle of a sweep: what it has is printed, nothing stays pinned.
for after in 1 3 6; do
  ./pinlane --device cuda bench > $OUT/interrupted-$after.txt 2> $OUT/interrupted-$after.err & pid=$!
  sleep $after; began=$(date +%s%N); kill -INT $pid; wait $pid; rc=$?
  echo "interrupted after $after s: status $rc, ended in $(( ($(date +%s%N) - began) / 1000000 )) ms, $(wc -l < $OUT/interrupted-$after.txt) lines"
done | tee $OUT/interrupted.txt
for i in 1 2 3 4 5; do /usr/bin/time -f "started and ended in %e s" ./pinlane --version; done 2>&1 | tee $OUT/start.txt
