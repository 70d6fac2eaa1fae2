#!/bin/bash
# Plans beside other ways, on jobs drawn by a seed. In the folder of the binary:
#   plans   cargo bench -p pinlane --bench plans --no-run
# SEED is chosen after the code is frozen. OUT is where the output goes. Takes about 5 minutes.
timeout 480 ./plans "$SEED" 60 2>&1 | tee "$OUT/plans.txt"
