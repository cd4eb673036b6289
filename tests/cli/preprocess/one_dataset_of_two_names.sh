# SPDX-License-Identifier: Apache-2.0
# `o` with the key a_b and `o_a` with the key b both write o_a_b_document. If a run of one pair is
# unfinished, a run of the other pair must neither resume nor overwrite it.
for i in {1..20}; do echo "{\"a_b\": \"first $i\", \"b\": \"second $i\", \"x\": \"y\"}"; done > in.jsonl
first() { preprocess_bytes --input in.jsonl --output-prefix o --json-keys a_b "$@"; }
second() { preprocess_bytes --input in.jsonl --output-prefix o_a --json-keys "$@"; }
first 2> log
mkdir wanted
mv o_a_b_document.* wanted
export MILLRACE_TEST_BLOCK_BYTES=50 MILLRACE_TEST_CHECKPOINT_MS=0
# The subshell keeps the message about the kill out of the output.
(MILLRACE_TEST_KILL_AT=journal:9 first) 2> log || true
test -e o.journal
for flag in '' --resume --overwrite; do
  second b $flag || echo "= $?" >&2
done
second x 2> log  # this writes another dataset
first --resume 2> log
for file in wanted/*; do cmp "$file" "$(basename "$file")"; done
second b --overwrite 2> log
