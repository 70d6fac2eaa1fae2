#!/usr/bin/env bash
# Made the files beside this on a machine with an H200, given the release binary `pinlane` and, as
# `cudarc-test`, the test program tests/cudarc.rs of crates/pinlane with the feature `cudarc`.
set -u
time ./pinlane --device cuda selftest > selftest.txt
./pinlane --device cuda compare > compare.txt
compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 3 \
  ./pinlane --device cuda selftest > sanitizer.txt
# Two of its tests need a second GPU, or none.
PINLANE_TEST_ON_LIBCUDA=1 ./cudarc-test --test-threads=1 \
  --skip memory_of_another_device --skip a_device_without_libcuda > cudarc.txt
python3 fault.py > fault.txt
