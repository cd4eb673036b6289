# SPDX-License-Identifier: Apache-2.0
# A small input is counted exactly. Nothing is written.
printf '%s\n' '{"text": "ab", "b": "x"}' '{"text": "c", "b": ""}' bad > in.jsonl
run() { preprocess_bytes --input in.jsonl --output-prefix out --json-keys text b --dry-run "$@"; }
run | sed -E '/^(time|memory)/d; s/exact; .*/exact/'
run --json | grep -Eo '"(exact|documents|documents_error|tokens|bin_bytes|idx_bytes)": [a-z0-9.]+'
preprocess_bytes --input in.jsonl --output-prefix out --json-keys text b --on-bad-record skip 2> log
stat -c %s out_text_document.bin out_text_document.idx out_b_document.bin out_b_document.idx
