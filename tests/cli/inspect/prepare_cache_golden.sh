# SPDX-License-Identifier: Apache-2.0
# Compares the cache files with those of megatron-core, byte by byte.
golden=$CASE_DIR/../../golden
cp "$golden"/megatron/idx_int32.{bin,idx} .
inspect_dataset prepare-cache --data-path idx_int32 --split 1,0,0 --seq-length 2 --train-samples 6 \
    --data-cache-path cache --tokenizer-description "$golden/megatron_cache/tokenizer.json" | wc -l
for file in "$golden"/megatron_cache/*-GPTDataset-*; do cmp "$file" "cache/${file##*/}"; done
ls cache
