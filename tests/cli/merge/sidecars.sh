# SPDX-License-Identifier: Apache-2.0
# The sidecars of the parts become the sidecars of the merged dataset, as if one run had written it.
preprocess() { preprocess_bytes --on-bad-record quarantine "$@" 2> /dev/null; }
printf '{"text": "a"}\nno JSON\n{"text": "bc"}\n' > 1.jsonl
printf '\n{"text": "def"}\nnor this\n' > 2.jsonl
mkdir parts
preprocess --input 1.jsonl --output-prefix parts/1
preprocess --input 2.jsonl --output-prefix parts/2
preprocess --input 1.jsonl 2.jsonl --output-prefix whole
merge_datasets --input parts --output-prefix merged
for suffix in bin idx meta sum src bad; do cmp merged.$suffix whole_text_document.$suffix; done
# A part that has changed since it was written is named.
printf 'x' | dd of=parts/2_text_document.bin bs=1 seek=1 conv=notrunc 2> /dev/null
merge_datasets --input parts --output-prefix again || echo "= $?"
test "$(echo again*)" = 'again*'
