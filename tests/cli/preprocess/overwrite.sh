# SPDX-License-Identifier: Apache-2.0
echo '{"text": "a"}' > in.jsonl
echo old > out_text_document.bin
echo old > out_text_document.idx
preprocess_bytes --input in.jsonl --output-prefix out --overwrite 2> log
od -An -tu2 out_text_document.bin
test "$(echo out*)" = 'out_text_document.bin out_text_document.idx out_text_document.meta out_text_document.src out_text_document.sum'
