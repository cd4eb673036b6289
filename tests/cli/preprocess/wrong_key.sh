# SPDX-License-Identifier: Apache-2.0
# If a key is wrong, the message lists the existing keys. A run with only bad records fails and
# leaves nothing.
printf '{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}\n' > in.jsonl
run() { preprocess_bytes --input in.jsonl --output-prefix out --json-keys content "$@"; }
run || echo "= $?" >&2
for policy in skip quarantine; do
  run --on-bad-record "$policy" || echo "= $?" >&2
  test "$(echo *)" = in.jsonl
done
run --on-bad-record skip --partitions 2 2> /dev/null && exit 1
test "$(echo *)" = in.jsonl
# Existing output stays if the run that should replace it fails. --resume of a failed run starts a
# new run.
preprocess_bytes --input in.jsonl --output-prefix out --json-keys content text \
  --on-bad-record skip --overwrite 2> /dev/null && exit 1
sed 's/text/content/' in.jsonl > good.jsonl
preprocess_bytes --input good.jsonl --output-prefix out --json-keys content 2> /dev/null
cp out_content_document.bin before
run --on-bad-record skip --overwrite 2> /dev/null && exit 1
cmp before out_content_document.bin
test ! -e out.journal
test "$(echo *.partial)" = '*.partial'
rm out_*
MILLRACE_TEST_BLOCK_BYTES=1 MILLRACE_TEST_CHECKPOINT_MS=0 MILLRACE_TEST_KILL_AT=3 \
  run --on-bad-record skip 2> /dev/null && exit 1
test -e out.journal
{ run --on-bad-record skip --resume 2>&1 || true; } | grep -o 'every record is bad.*'
test "$(echo out*)" = 'out*'
