#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs run_all with a runtime on host threads, and checks that it ran its programs and wrote results.
#
# usage: check_run_all.sh RUN_ALL
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder" || exit 1
"$1" --minutes 10 --share 0.05 --data . || exit 1
faults=0
expect() {
  if ! grep -q -F -- "$2" "$1"; then
    echo "$1: expected '$2'"
    faults=1
  fi
}
expect results/results.md 'threads of the host, which are no GPU'
for step in tests kernel_time 'batch_rate, 64 KiB' 'batch_rate, large' 'step_ratio one_sm 5 ms, connections 8' \
  'step_ratio all_sms 1 ms, connections 8' 'step_ratio memory 0.3 ms, connections 1'; do
  expect results/results.md "| $step | passed |"
  expect results/results.json "\"step\": \"$step\", \"verdict\": \"passed\", \"status\": 0"
done
for figure in 'one_sm 5 ms: exposed per step' 'memory 0.3 ms, one queue: exposed per step' 'kernel, plain' \
  '64 KiB: bytes to the device per token' '128 KiB, i32: bytes to the device per token' \
  '4 MiB: loader over copies of the same bytes'; do
  expect results/results.md "| $figure | "
done
for left in millrace_bundle_*; do
  if [ -e "$left" ]; then
    echo "the data was not deleted: $left"
    faults=1
  fi
done
exit "$faults"
