# SPDX-License-Identifier: Apache-2.0
# --fim-rate permutes the same documents with any workers, tasks and interruptions. Variants can be merged.
for i in $(seq 300); do echo "{\"text\": \"größe $i of|the record\", \"title\": \"$i\"}"; done > a.jsonl
sed -n 1,100p a.jsonl > b.jsonl
tokens='--fim-prefix-token P --fim-middle-token M --fim-suffix-token S'
run() { preprocess_data --input a.jsonl b.jsonl --tokenizer-type ByteLevelTokenizer "$@" 2>&1; }
texts() { od -An -v -tu2 -w2 "$1.bin" | awk '{ printf "%c", $1 == 0 ? 10 : $1 }'; }
run --output-prefix half --append-eod --fim-rate 0.5 $tokens --workers 2 | grep documents
inspect_dataset verify half_text_document
grep -o '"options": {[^}]*}' half_text_document.meta
texts half_text_document > half.txt
head -4 half.txt
echo "$(grep -c M half.txt) permuted, $(grep -c '^PS' half.txt) of them with the suffix first"
# All other flags.
run --output-prefix all --append-eod --fim-rate 1 --fim-spm-rate 0 --fim-seed 18446744073709551615 --fim-split-sample '|' \
  --fim-fragment-rate 1 --fim-no-prefix 'the r' $tokens | grep documents
grep -o '"options": {[^}]*}' all_text_document.meta
texts all_text_document > all.txt
head -2 all.txt
# Tasks, partitions, and both keys of a record, which have equal draws.
mkdir parts
for task in 0 1 2; do run --output-prefix parts/p --append-eod --fim-rate 0.5 $tokens --task $task/3 > /dev/null; done
merge_datasets --input parts --output-prefix merged > /dev/null 2>&1
for suffix in bin idx meta src sum; do cmp "merged.$suffix" "half_text_document.$suffix"; done
run --output-prefix keys --append-eod --fim-rate 0.5 $tokens --json-keys text title > /dev/null
cmp keys_text_document.bin half_text_document.bin
run --output-prefix dealt --append-eod --fim-rate 0.5 $tokens --partitions 4 > /dev/null
cmp <(texts dealt_text_document | sort) <(sort half.txt)
# Interrupted runs need the same flags again.
run --output-prefix half --append-eod --fim-rate 0.5 $tokens --resume > log
head -1 log
run --output-prefix half --append-eod --fim-rate 0.5 $tokens --fim-seed 1 --resume || echo "status $?"
run --output-prefix dry --append-eod --fim-rate 0.5 $tokens --dry-run | grep -E 'documents'
# Two variants.
run --output-prefix other --append-eod --fim-rate 0.5 --fim-seed 1 $tokens > /dev/null
cmp -s half_text_document.bin other_text_document.bin || echo differs
mkdir variants
for suffix in bin idx meta src sum; do for of in half other; do cp "${of}_text_document.$suffix" variants/; done; done
merge_datasets --input variants --output-prefix both 2> /dev/null
inspect_dataset verify both
grep -o '"options": {[^}]*}' both.meta
# A line that is too long.
{ MILLRACE_TEST_GIANT_BYTES=50 run --output-prefix long --fim-rate 0.5 $tokens || true; } | head -1
# Mistakes.
for flags in '--fim-rate -0.1' '--fim-rate 1.5' '--fim-rate half' '--fim-rate nan' '--fim-spm-rate 0.5' '--fim-seed 1' \
  '--fim-no-prefix x' '--fim-prefix-token P' '--fim-rate 0.5 --fim-spm-rate 2' '--fim-rate 0.5 --fim-seed -1' \
  '--fim-rate 0.5 --fim-split-sample |' '--fim-rate 0.5 --fim-fragment-rate 1' '--fim-rate 0.5' \
  '--fim-rate 0.5 --fim-prefix-token P --fim-middle-token P --fim-suffix-token S' '--fim-rate 0.5 --split-sentences'; do
  { run --output-prefix bad $flags || true; } | head -1
done
{ preprocess_data --input a.jsonl --output-prefix bad --tokenizer-type NullTokenizer --vocab-size 9 --fim-rate 0.5 2>&1 || true; } | head -1
