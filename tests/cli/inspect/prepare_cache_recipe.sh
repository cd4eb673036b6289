# SPDX-License-Identifier: Apache-2.0
# Without --tokenizer-description, prepare-cache shows the Python code that writes the description.
echo '{"text": "one two three"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix a 2> log
cache=(--data-path 1 a_text_document --seq-length 4 --data-cache-path cache --train-samples 1)
inspect_dataset prepare-cache "${cache[@]}" || echo "= $?"
# The message names the part whose number of samples is missing.
echo '{}' > tokenizer.json
inspect_dataset prepare-cache "${cache[@]}" --tokenizer-description tokenizer.json || echo "= $?"
