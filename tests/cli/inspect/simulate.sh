# SPDX-License-Identifier: Apache-2.0
# Simulates ranks that only wait. Times differ between runs, so they are replaced by N. The
# checksums must be the same for each reader and speed, for threads and for processes.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
run=(--order instant --seq-length 10 --train-samples 200 --ranks 2)
short=(--steps 20 --full-speed-steps 10 --compute-ms 0.5)
inspect_dataset simulate preprocess_lines "${run[@]}" "${short[@]}" |
  sed -E 's/stalls by.*, checksum|no stalls, checksum/STALLS, checksum/
          s/(utilization|p50|p99|max|step|memory:|private,|pages,) [0-9.]+ ?([num]?s|[KMG]iB|%)?/\1 N/g; s/^steps of [0-9.]+ ms/steps of N/
          s/, [0-9.]+ [KMG]iB/, N/g; s/: (passes|below) /: ? /; s/, [0-9]+ % in/, N % in/; s/reader [a-z_]+/reader R/'
checksums() {
  inspect_dataset simulate preprocess_lines "${run[@]}" --steps 20 --compute-ms 0.5 --json "$@" |
    grep -oE '"checksum": "[0-9a-f]+"'
}
for how in '10 --reader pread --threads 2' '10 --latency-us 1000 --jitter-us 500 --mb-per-second 10' \
    '0 --processes' '10 --sync --reader mmap --no-prefetch --latency-us 500' '10 --cold'; do
  # shellcheck disable=SC2086  # flags and values
  checksums --full-speed-steps $how
done
for bad in '' '--compute-ms -1' '--compute-ms 1 --reader tape' '--compute-ms 1 --sync --processes' \
    '--compute-ms 1 --steps 1' '--compute-ms 1 --no-prefetch' '--compute-ms 1 --mb-per-second 0' \
    '--compute-ms 1 --steps 90 --full-speed-steps 30'; do
  # shellcheck disable=SC2086  # flags and values
  inspect_dataset simulate preprocess_lines "${run[@]}" $bad 2>&1 | grep -v '^usage' || true
done
