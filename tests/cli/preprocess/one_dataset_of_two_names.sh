# SPDX-License-Identifier: Apache-2.0
# `o` with the key a_b and `o_a` with the key b both write o_a_b_document: an unfinished run of one
# is not taken for, nor overwritten by, the other.
for i in {1..20}; do echo "{\"a_b\": \"first $i\", \"b\": \"second $i\", \"x\": \"y\"}"; done > in.jsonl
first() { preprocess_bytes --input in.jsonl --output-prefix o --json-keys a_b "$@"; }
second() { preprocess_bytes --input in.jsonl --output-prefix o_a --json-keys "$@"; }
first 2> log
mkdir wanted
mv o_a_b_document.* wanted
export MILLRACE_TEST_BLOCK_BYTES=50 MILLRACE_TEST_CHECKPOINT_MS=0
# The shell of its own says nothing of the kill.
(MILLRACE_TEST_KILL_AT=journal:9 first) 2> log || true
test -e o.journal
for flag in '' --resume --overwrite; do
  second b $flag || echo "= $?" >&2
done
second x 2> log  # another dataset
first --resume 2> log
for file in wanted/*; do cmp "$file" "$(basename "$file")"; done
second b --overwrite 2> log
