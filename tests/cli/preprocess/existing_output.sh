# SPDX-License-Identifier: Apache-2.0
# Existing output is replaced only on request, even if it is incomplete.
echo '{"text": "a"}' > in.jsonl
fails() {
  local status=0
  preprocess_bytes --input in.jsonl --output-prefix out || status=$?
  echo "= $status" >&2
}
echo old > out_text_document.bin
fails
mv out_text_document.bin out_text_document.idx
fails
cat out_text_document.idx
rm out_text_document.idx
preprocess_bytes --input in.jsonl --output-prefix out 2> log
fails
