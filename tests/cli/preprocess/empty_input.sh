# SPDX-License-Identifier: Apache-2.0
# An input without documents is not an error, since a folder of shards may contain an empty one.
touch nothing.jsonl nothing.gz
preprocess_bytes --input nothing.jsonl nothing.gz --output-prefix out 2> log
cmp out_text_document.idx "$CASE_DIR/../../golden/megatron/idx_empty.idx"
test ! -s out_text_document.bin
