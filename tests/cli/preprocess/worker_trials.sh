# SPDX-License-Identifier: Apache-2.0
# --find-optimal-num-workers measures and writes nothing, except what --performance-dir asks for.
for i in $(seq 3000); do echo "{\"text\": \"record $i\"}"; done > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --find-optimal-num-workers --workers-to-check 2 1 2 \
  --performance-dir deep/perf --max-documents 2000 > table 2> log
grep -c '^trial [1-6] of 6: [12] workers*, [0-9,]* documents/s$' log
head -1 table
grep -oE '^fastest: --workers|, with the first [0-9],[0-9]* documents' table | sed 's/[0-9],[0-9]*/N/'
sort deep/perf/*_workers.json | sed -E 's/[0-9.]{4,}/R/g'
preprocess_bytes --input in.jsonl --output-prefix out --find-optimal-num-workers --json 2> log |
  sed -E 's/[0-9.]+/N/g; s/, \{"workers".*/, .../; s/\}\]\}//'
test "$(echo *)" = 'deep in.jsonl log table'
test "$(ls -A | wc -l)" = 4
misuse() {
  local status=0
  preprocess_bytes --input in.jsonl --output-prefix out --find-optimal-num-workers "$@" > log 2>&1 || status=$?
  head -1 log >&2
  echo "= $status" >&2
}
misuse --workers-to-check 0
misuse --workers-to-check two
misuse --workers-to-check
misuse --max-documents 0
misuse --task 0/2
misuse --resume
misuse --dry-run
misuse --performance-dir in.jsonl/perf
preprocess_bytes --input - --output-prefix out --find-optimal-num-workers < in.jsonl || echo "= $?" >&2
preprocess_bytes --input /dev/null --output-prefix out --find-optimal-num-workers || echo "= $?" >&2
: > empty.jsonl
preprocess_bytes --input empty.jsonl --output-prefix out --find-optimal-num-workers 2>&1 | tail -1 >&2 || true
rm empty.jsonl
echo 'no JSON' > bad.jsonl
preprocess_bytes --input bad.jsonl --output-prefix out --find-optimal-num-workers || echo "= $?" >&2
test "$(ls -A | wc -l)" = 5
