# SPDX-License-Identifier: Apache-2.0
# Files with the window of `zstd --long=31` are decompressed, or refused with a message about the
# window, from a file and from a pipe.
command -v zstd > /dev/null || { echo "zstd is not installed" >&2; exit 77; }
# Through a pipe, zstd does not know that the text is short.
echo '{"text": "a"}' | zstd -q --long=31 -T1 > in.jsonl.zst
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix plain 2> log
preprocess_bytes --input in.jsonl.zst --output-prefix file --zstd-memory 2048 2> log
cat in.jsonl.zst | preprocess_bytes --input - --output-prefix pipe --zstd-memory 2048 2> log
cmp plain_text_document.bin file_text_document.bin
cmp plain_text_document.bin pipe_text_document.bin
refused() {
  local status=0
  preprocess_bytes "$@" || status=$?
  echo "= $status" >&2
}
refused --input in.jsonl.zst --output-prefix small --zstd-memory 2047
cat in.jsonl.zst | refused --input - --output-prefix small --zstd-memory 1024
