#!/bin/bash
# What was run on the H200, in the folder of the binaries:
#   express, pool   cargo bench -p pinlane --bench express --bench pool --no-run
#   pinlane         cargo build --release -p pinlane-cli
# OUT is where the outputs go.
nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.width.current --format=csv > $OUT/machine.txt
lscpu | grep -E "Model name|^CPU\(s\)|L2|L3|NUMA node" >> $OUT/machine.txt
cat /sys/kernel/mm/transparent_hugepage/enabled >> $OUT/machine.txt; uname -r >> $OUT/machine.txt

timeout 200 ./express 2>&1 | tee $OUT/express.txt
echo "== two cores" | tee $OUT/two-cores.txt
timeout 60 taskset -c 0,1 ./express copies 2>&1 | tee -a $OUT/two-cores.txt
timeout 20 ./pool 2>&1 | tee $OUT/pool.txt

# A control group with 512 MiB: asking for 2 GiB of pinned memory.
mkdir -p /sys/fs/cgroup/small && echo 536870912 > /sys/fs/cgroup/small/memory.max
(echo $BASHPID > /sys/fs/cgroup/small/cgroup.procs
 echo "memory.max $(cat /sys/fs/cgroup/small/memory.max)"
 timeout 60 ./express limit; echo "exit status $?") 2>&1 | tee $OUT/cgroup.txt

timeout 60 ./pinlane --device cuda selftest 2>&1 | tail -3 | tee $OUT/selftest.txt
timeout 100 compute-sanitizer --tool memcheck --report-api-errors no ./pinlane --device cuda selftest 2>&1 | tail -4 | tee $OUT/memcheck.txt
