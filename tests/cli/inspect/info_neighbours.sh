# SPDX-License-Identifier: Apache-2.0
# `info` warns on stderr about sorted data, but not about shuffled data.
mkdir in
for part in 1 2; do
  for i in $(seq 1 1200); do printf '{"text": "%0*d"}\n' $((i / 20 + 1)) 7; done > $part.jsonl
  preprocess_bytes --input $part.jsonl --output-prefix in/$part 2> /dev/null
done
merge_datasets --input in --output-prefix plain 2> /dev/null
merge_datasets --input in --output-prefix mixed --shuffle-documents 1 2> /dev/null
inspect_dataset info plain > /dev/null
inspect_dataset info mixed --json | grep -o '"same_input_shuffled": 0.5}'
