# SPDX-License-Identifier: Apache-2.0
# All bad is still what was asked for: an empty dataset, with the counts to see it by.
printf 'bad\nworse\n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --on-bad-record skip
cmp out_text_document.idx "$CASE_DIR/../../golden/megatron/idx_empty.idx"
test ! -s out_text_document.bin
