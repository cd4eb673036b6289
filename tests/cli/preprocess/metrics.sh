# SPDX-License-Identifier: Apache-2.0
# The last line reports that the run has finished. If metrics cannot be written, the run continues.
printf '%s\n' '{"text": "ab"}' '{"text": "c"}' bad > in.jsonl
run() { preprocess_bytes --input in.jsonl --output-prefix out --overwrite --on-bad-record skip "$@"; }
run --metrics lines 2> log
tail -n 1 lines | grep -Eo '"(documents|tokens|input_bytes|output_bytes|bad_records|finished)": [a-z0-9]+'
run --metrics text --metrics-format prometheus 2> log
grep -v '^#' text | grep -v seconds
run --metrics /dev/full 2> log
grep note: log
