# SPDX-License-Identifier: Apache-2.0
# gzip and zstd files are recognized by their contents, not by their names.
command -v zstd > found || { echo 'no zstd program' >&2; exit 77; }
printf '{"text": "a"}\n{"text": "bc"}\n' > plain
(head -n 1 plain | gzip; tail -n 1 plain | gzip) > members
(head -n 1 plain | zstd -q; tail -n 1 plain | zstd -q) > frames
gzip < plain > plain.jsonl.gz
for input in plain members frames plain.jsonl.gz; do
  preprocess_bytes --input "$input" --output-prefix "$input" 2> log
  cmp "${input}_text_document.bin" plain_text_document.bin
  cmp "${input}_text_document.idx" plain_text_document.idx
done
