# SPDX-License-Identifier: Apache-2.0
# Prepares caches of blends by weight and by length, from flags and from files. Several validation
# sets are not blended.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines_eod.bin e.bin
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines_eod.idx e.idx
echo '{"class": "a.Tokenizer", "vocab_size": "300"}' > tokenizer.json
prepare() {
  inspect_dataset prepare-cache --seq-length 4 --data-cache-path cache \
      --tokenizer-description tokenizer.json "$@"
}
prepare --data-path 0.3 preprocess_lines 0.7 e --split 6,2,2 --train-samples 500 --valid-samples 30 --test-samples 5
echo '0.3 preprocess_lines 0.7 e' > blend.txt
prepare --data-args-path blend.txt --split 6,2,2 --train-samples 500 --valid-samples 30 --test-samples 5 | grep blend
prepare --data-path preprocess_lines e --split 8,2 --json
prepare --train-data-path 3 preprocess_lines 1 e --train-samples 50 --valid-data-path preprocess_lines e \
    --multiple-validation-sets --full-validation
echo '{"train": "preprocess_lines e", "valid": ["preprocess_lines", "e"], "test": null}' > parts.json
prepare --per-split-data-args-path parts.json --train-samples 50
prepare --data-path 0.3 preprocess_lines 0.7 e --split 6,2,2 || echo "exit $?"
