# SPDX-License-Identifier: Apache-2.0
# `where` refuses missing options, sizes that do not divide, and places that do not exist.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
fails() { inspect_dataset where "$@" || echo "exit $?"; }
fails preprocess_lines --seq-length 40 --step 0
fails preprocess_lines --order random --seq-length 40 --step 0
fails preprocess_lines --order instant --step 0
fails preprocess_lines --order instant --seq-length 40
fails preprocess_lines --order instant --seq-length 40 --step 0 --document 3
fails preprocess_lines --order instant --seq-length 40 --rank 0
fails preprocess_lines --order instant --seq-length 40 --split 1,1,0 --step 0
fails preprocess_lines --order instant --seq-length 40 --step 0 --ranks 0
fails preprocess_lines --order instant --seq-length 40 --step 0 --ranks 3 --global-batch-size 8
fails preprocess_lines --order instant --seq-length 40 --step 0 --rank 1
fails preprocess_lines --order instant --seq-length 40 --document 1000
fails preprocess_lines --order instant --seq-length 40 --document -1
fails preprocess_lines --order instant --seq-length 400000 --step 0
fails preprocess_lines --order megatron --seq-length 40 --step 1000
fails preprocess_lines --order megatron --seq-length 40 --step 0 --seed 4294967296
fails preprocess_lines --order megatron --seq-length 40 --step 0 --split 0,1,0
fails --order instant --seq-length 40 --step 0
fails preprocess_lines --data-path preprocess_lines --order instant --seq-length 40 --step 0
fails --data-path a b --order instant --seq-length 40 --step 0
fails nowhere --order instant --seq-length 40 --step 0
fails --data-path 1 preprocess_lines 1 other --order megatron --seq-length 40 --step 0
fails preprocess_lines --order megatron --seq-length 40 --step 0 --data-cache-path cache
echo '{}' > tokenizer.json
fails preprocess_lines --order instant --seq-length 40 --step 0 --data-cache-path cache \
    --tokenizer-description tokenizer.json
