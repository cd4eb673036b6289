# SPDX-License-Identifier: Apache-2.0
# Reports each kind of bad record. Lines count from 1, bytes from 0, both in the decompressed file.
fails() {
  local status=0
  printf '{"text": "a"}\r\n\n%b\n{"text": "b"}\n' "$1" > in.jsonl
  preprocess_bytes --input in.jsonl --output-prefix out || status=$?
  echo "= $status" >&2
}
fails '{"text": "a"'
fails '{"text": "a"} {"text": "b"}'
fails '{"text": "\xff"}'
fails '{"text": "\\xff"}'
fails '{"text": "\t"}'
fails '["text"]'
fails '{"Text": "a"}'
fails '{"text": null}'
fails '{"text": 7}'
fails '{"text": {"text": "a"}}'
fails '{"text": ["a", ["b"]]}'
fails 'text'
test "$(echo *)" = in.jsonl
