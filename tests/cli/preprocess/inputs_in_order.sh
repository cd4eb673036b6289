# SPDX-License-Identifier: Apache-2.0
# Files are read in the given order, as if they were one file. The matches of a pattern are sorted.
mkdir data
for name in b a c10 c2; do echo "{\"text\": \"$name\"}" > "data/$name.jsonl"; done
preprocess_bytes --input data/b.jsonl 'data/c*.jsonl' data/a.jsonl --output-prefix out 2> log
cat data/b.jsonl data/c10.jsonl data/c2.jsonl data/a.jsonl > all.jsonl
preprocess_bytes --input all.jsonl --output-prefix all 2> log
cmp out_text_document.bin all_text_document.bin
cmp out_text_document.idx all_text_document.idx
preprocess_bytes --input data/b.jsonl --input 'data/c*.jsonl' data/a.jsonl --output-prefix twice 2> log
cmp twice_text_document.bin all_text_document.bin
