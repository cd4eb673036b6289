# SPDX-License-Identifier: Apache-2.0
# If the tokenizer refuses a text, its record is bad. The message gives the key, the place in the
# text, and the reason.
fails() {
  local status=0
  printf '{"text": "1 2"}\n%s\n' "$1" > in.jsonl
  preprocess_data --input in.jsonl --output-prefix out --tokenizer-type NullTokenizer \
    --vocab-size 1000 || status=$?
  echo "= $status" >&2
}
fails '{"text": "3 1000"}'
fails '{"text": "3 -1"}'
fails '{"text": "three"}'
fails '{"text": ["3", "4  5"]}'
fails '{"text": "99999999999999999999"}'
test "$(echo *)" = in.jsonl
