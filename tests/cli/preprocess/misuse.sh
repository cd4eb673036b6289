# SPDX-License-Identifier: Apache-2.0
# Usage errors exit with 2, unlike failures, and print nothing to stdout.
echo '{"text": "a"}' > in.jsonl
misuse() {
  local status=0
  preprocess_bytes "$@" || status=$?
  echo "= $status: ${*@Q}" >&2
}
misuse
misuse --input in.jsonl
misuse --output-prefix out
misuse --input in.jsonl --output-prefix out --no-such-flag
misuse --input in.jsonl --output-pre out
misuse in.jsonl --input in.jsonl --output-prefix out
misuse --input --output-prefix out
misuse --input in.jsonl --output-prefix out --json-keys
misuse --input in.jsonl --output-prefix out --json-keys a b a
misuse --input in.jsonl --output-prefix out --output-prefix out2
misuse --input in.jsonl --output-prefix out/
misuse --input in.jsonl --output-prefix ''
misuse --input in.jsonl --output-prefix .
misuse --input in.jsonl --output-prefix out/..
misuse --input in.jsonl --output-prefix out --text-key a..b
misuse --input in.jsonl --output-prefix out --workers 0
misuse --input in.jsonl --output-prefix out --tokenizer-memory -1
misuse --input in.jsonl --output-prefix out --zstd-memory 7
misuse --input in.jsonl --output-prefix out --workers=-1
misuse --input in.jsonl --output-prefix out --workers 2000
misuse --input in.jsonl --output-prefix out --workers two
misuse --input in.jsonl --output-prefix out --workers 99999999999999999999
misuse --input in.jsonl --output-prefix out --workers 2x
misuse --input in.jsonl --output-prefix out --log-interval 0
misuse --input in.jsonl --output-prefix out --on-bad-record ignore
misuse --input in.jsonl --output-prefix out --overwrite=yes
misuse --input in.jsonl --output-prefix out --metrics-format json
misuse --input in.jsonl --output-prefix out --metrics m --metrics-format xml
test "$(echo *)" = in.jsonl
