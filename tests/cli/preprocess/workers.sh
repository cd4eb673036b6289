# SPDX-License-Identifier: Apache-2.0
# The number of workers does not affect the output, even if it exceeds the number of processors.
corpus=$CASE_DIR/../../../scripts/sample/corpus.jsonl
for workers in 1 3 64; do
  preprocess_bytes --input "$corpus" --output-prefix "w$workers" --workers "$workers" 2> log
  cmp "w${workers}_text_document.bin" w1_text_document.bin
  cmp "w${workers}_text_document.idx" w1_text_document.idx
done
