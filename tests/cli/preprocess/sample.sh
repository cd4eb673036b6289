# SPDX-License-Identifier: Apache-2.0
# --sample-rate takes the same records with any workers, tasks and interruptions, and says what it left out.
for i in $(seq 1000); do echo "{\"text\": \"record $i\"}"; done > a.jsonl
sed -n 1,500p a.jsonl > b.jsonl
run() { preprocess_data --input a.jsonl b.jsonl --tokenizer-type ByteLevelTokenizer "$@" 2>&1; }
run --output-prefix tenth --sample-rate 0.1 --workers 2 | grep -E 'documents|left out'
inspect_dataset verify tenth_text_document
grep -o '"options": {[^}]*}' tenth_text_document.meta
grep -o '"not_sampled": [0-9]*' tenth_text_document.meta
# Another seed takes other records.
run --output-prefix other --sample-rate 1e-1 --sample-seed 18446744073709551615 | grep 'left out'
cmp -s tenth_text_document.bin other_text_document.bin || echo differs
# Tasks and partitions.
mkdir parts
for task in 0 1 2; do run --output-prefix parts/p --sample-rate 0.1 --task $task/3 > /dev/null; done
merge_datasets --input parts --output-prefix merged > /dev/null
for suffix in bin idx meta src sum; do cmp "merged.$suffix" "tenth_text_document.$suffix"; done
run --output-prefix dealt --sample-rate 0.1 --partitions 4 | grep -E 'documents|left out'
inspect_dataset verify dealt_text_document | grep -o 'the .meta matches'
# Interrupted runs: the rate and the seed must be the same again.
run --output-prefix tenth --sample-rate 0.1 --sample-seed 0 --resume | head -1
run --output-prefix tenth --sample-rate 0.2 --resume || echo "status $?"
run --output-prefix dry --sample-rate 0.1 --dry-run | grep -E 'documents|chance'
# Mistakes.
for flags in '--sample-rate 0' '--sample-rate 1.5' '--sample-rate 10%' '--sample-rate -1' '--sample-rate nan' \
  '--sample-seed 1' '--sample-rate 0.5 --sample-seed -1' '--sample-rate 0.5 --sample-seed 18446744073709551616'; do
  run --output-prefix bad $flags | head -1 || true
done
