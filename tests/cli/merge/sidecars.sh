# SPDX-License-Identifier: Apache-2.0
# What lies beside the parts becomes what lies beside the whole, as if one run had made it.
preprocess() { preprocess_bytes --on-bad-record quarantine "$@" 2> /dev/null; }
printf '{"text": "a"}\nno JSON\n{"text": "bc"}\n' > 1.jsonl
printf '\n{"text": "def"}\nnor this\n' > 2.jsonl
mkdir parts
preprocess --input 1.jsonl --output-prefix parts/1
preprocess --input 2.jsonl --output-prefix parts/2
preprocess --input 1.jsonl 2.jsonl --output-prefix whole
merge_datasets --input parts --output-prefix merged
for suffix in bin idx meta sum src bad; do cmp merged.$suffix whole_text_document.$suffix; done
# A part that is not what it was when it was made is named.
printf 'x' | dd of=parts/2_text_document.bin bs=1 seek=1 conv=notrunc 2> /dev/null
merge_datasets --input parts --output-prefix again || echo "= $?"
test "$(echo again*)" = 'again*'
