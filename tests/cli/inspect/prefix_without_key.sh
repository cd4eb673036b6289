# SPDX-License-Identifier: Apache-2.0
# If PREFIX is the --output-prefix of preprocess_data, the error message names the dataset.
echo '{"text": "abc", "title": "x"}' > in.jsonl
mkdir out
preprocess_bytes --input in.jsonl --output-prefix out/m7 2> log
fails() { inspect_dataset "$@" || echo "= $?"; }
fails info out/m7
fails verify out/m7_text
run=(--order instant --seq-length 2 --train-samples 2 --step 0)
fails where out/m7 "${run[@]}"
fails where --data-path 1 out/m7_text_document 2 out/m7 "${run[@]}"
fails prepare-cache --data-path out/m7 --seq-length 2 --data-cache-path cache \
    --tokenizer-description "$CASE_DIR"/../../golden/megatron_cache/tokenizer.json
preprocess_bytes --input in.jsonl --output-prefix out/m7 --json-keys title 2> log
cd out
fails show m7 --doc 0
for key in 1 2 3; do cp m7_text_document.idx m7_$key.idx; done
fails show m7 --doc 0
# There is no dataset to suggest.
fails info m8
fails info nowhere/m8
