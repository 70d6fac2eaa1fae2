#!/bin/bash
# The library before (1155067) and after it was made a tenth smaller, side by side on an H200 and in turns. `old` and `new`
# hold the benches of both trees, `new` the tool too, `examples` the numbered examples, `readme` README's program.
# OUT is where the outputs go, DATA holds the files of ../h200-load/make.py.
set -u
cd "$(dirname "$0")"
export DATA=${DATA:-/tmp/data}
(nvidia-smi; uptime) > $OUT/leaner.txt 2>&1
python3 ../h200-load/make.py $DATA --threads 12 > /tmp/make.txt 2>&1
run() { echo "### $*" >> $OUT/leaner.txt; "$@" >> $OUT/leaner.txt 2>&1; echo "exit $?" >> $OUT/leaner.txt; }
run ./new/pinlane --device cuda selftest
for example in examples/*; do run $example cuda; done
(cd readme && ./readme > /tmp/readme.txt 2>&1; echo "README's program: exit $?" >> /tmp/readme.txt); cat /tmp/readme.txt >> $OUT/leaner.txt
for round in 1 2; do for tree in old new; do run ./$tree/express copies; done; done
for round in 1 2; do for tree in new old; do for set in big many; do run ./$tree/load once $DATA/$set; done; done; done
for round in 1 2; do for tree in old new; do run ./$tree/loader rates; done; done
for round in 1 2; do for tree in new old; do run ./$tree/pipeline rates; done; done
for tree in old new; do run ./$tree/pool; done
run ./new/pinlane --device cuda overlap
uptime >> $OUT/leaner.txt
