# SPDX-License-Identifier: Apache-2.0
# A metrics file that cannot be created, or would overwrite an output, is refused before the run
# starts.
echo '{"text": "a"}' > in.jsonl
mkdir folder
ln -s . link
try() {
  local status=0
  preprocess_bytes --input in.jsonl --output-prefix out --metrics "$@" 2> log || status=$?
  echo "= $status: $(sed "s|$PWD|HERE|" log)"
}
try out_text_document.bin
try "$PWD/out_text_document.meta"
try link/out_text_document.idx.partial
try out.journal
try out_text_document.bin --metrics-format prometheus
try out_text_document.part-00001.bin.partial --partitions 2
try nowhere/metrics
try folder
try folder/
try in.jsonl
echo ./*
