# SPDX-License-Identifier: Apache-2.0
# If all records of one task are bad, the task still succeeds. If all records of all tasks are bad,
# the merge fails, as a single run would.
mkdir parts bad
for i in 1 2 3 4 5 6; do echo "{\"id\": $i, \"title\": \"t\"}"; done > in.jsonl
echo '{"text": "the only good record of both tasks"}' >> in.jsonl
for i in 0 1; do
  preprocess_bytes --input in.jsonl --output-prefix parts/p --task $i/2 --on-bad-record skip 2>&1 |
    grep 'every record' || true
done
preprocess_bytes --input in.jsonl --output-prefix whole --on-bad-record skip 2> log
merge_datasets --input parts --output-prefix merged 2> log
cmp merged.meta whole_text_document.meta
for i in 0 1; do
  preprocess_bytes --input in.jsonl --output-prefix bad/p --json-keys txt --task $i/2 \
    --on-bad-record skip 2> log
done
merge_datasets --input bad --output-prefix none || echo "= $?" >&2
test "$(echo none*)" = 'none*'
