#!/bin/bash
# Runs all fuzz targets, several at once: run.sh BINARIES SECONDS JOBS OUTPUT [TARGET...]
#
#   cargo +nightly fuzz build
#   fuzz/run.sh fuzz/target/x86_64-unknown-linux-gnu/release 60 2 /tmp/fuzz
#
# Needs no Rust: BINARIES is a folder with the built targets, and the corpora are beside this script. OUTPUT gets
# TARGET.log, TARGET/ (inputs that reach new code) and TARGET.found-* (inputs that fail). A target that fails
# starts again until its time is over, five times at most.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 4 ] || { sed -n '2,9s/^# \?//p' "$0"; exit 2; }
binaries=$(realpath "$1") seconds=$2 jobs=$3
mkdir -p "$4" && output=$(realpath "$4")
shift 4
[ $# -gt 0 ] || set -- $(ls "$here/corpus")

run() {
    target=$1
    mkdir -p "$output/$target"
    # Parsers open files: in memory, where there is such a folder.
    [ -d /dev/shm ] && export TMPDIR=/dev/shm
    end=$((SECONDS + seconds))
    TIMEFORMAT='cpu_seconds: %U %S'
    for _ in 1 2 3 4 5; do
        left=$((end - SECONDS))
        [ "$left" -gt 0 ] || break
        # The largest inputs are archives and profiles of a few KiB. A single allocation of 64 MiB is never
        # right for them.
        time "$binaries/$target" "$output/$target" "$here/corpus/$target" -max_total_time="$left" \
            -dict="$here/words.dict" -max_len=8192 -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=64 \
            -print_final_stats=1 -artifact_prefix="$output/$target.found-" && break
    done >>"$output/$target.log" 2>&1
}
export -f run
export here binaries seconds output

printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'run {}'
printf '%-12s %12s %8s %9s %9s %6s\n' target executions 'CPU s' coverage features found
for target in "$@"; do
    log=$output/$target.log
    executions=$(awk '/number_of_executed_units/ { sum += $2 } END { print sum + 0 }' "$log")
    cpu=$(awk '/^cpu_seconds/ { sum += $2 + $3 } END { printf "%.0f", sum }' "$log")
    last=$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -1)
    found=$(find "$output" -maxdepth 1 -name "$target.found-*" | wc -l)
    printf '%-12s %12s %8s %9s %9s %6s\n' "$target" "$executions" "$cpu" $(awk '{ print $2, $4 }' <<<"$last") "$found"
done
[ -z "$(find "$output" -maxdepth 1 -name '*.found-*')" ]
