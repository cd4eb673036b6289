# SPDX-License-Identifier: Apache-2.0
# Verifies existing caches: a whole one, one with a damaged entry, and one for another extra-token
# setting.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines_eod.bin e.bin
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines_eod.idx e.idx
echo '{"class": "a.Tokenizer", "vocab_size": "300"}' > tokenizer.json
prepare() {
  inspect_dataset prepare-cache --seq-length 5 --tokenizer-description tokenizer.json "$@"
}
one() {
  prepare --data-path preprocess_lines --split 1 --train-samples 500 --data-cache-path cache "$@"
}
one
one --verify
one --verify --json
shuffle=$(ls cache/*-shuffle_index.npy)
cp "$shuffle" whole
# Entry 499 becomes a copy of entry 498.
dd if=whole of="$shuffle" bs=1 count=4 skip=$((128 + 4 * 498)) seek=$((128 + 4 * 499)) conv=notrunc 2> err
one
one --verify || echo "exit $?"
cp whole "$shuffle"
one --no-extra-token || echo "exit $?"
prepare --data-path preprocess_lines --split 1 --train-samples 500 --data-cache-path without --no-extra-token
prepare --data-path preprocess_lines --split 1 --train-samples 500 --data-cache-path without || echo "exit $?"
# A blend in which one entry was changed is built again.
blend() {
  prepare --train-data-path 0.3 preprocess_lines 0.7 e --train-samples 50 --data-cache-path blend "$@" |
      grep 'of the blend'
}
blend
blend --verify
sample=$(ls blend/*-dataset_sample_index.npy)
printf '\001' | dd of="$sample" bs=1 seek=$((128 + 8 * 20)) conv=notrunc 2> err
blend
blend --verify
# Requests one epoch of a part that is shorter than a sample.
inspect_dataset prepare-cache --data-path preprocess_lines --split 30,70,0 --seq-length 150 \
    --tokenizer-description tokenizer.json --data-cache-path cache || echo "exit $?"
prepare --data-path preprocess_lines --data-cache-path '' 2>&1 | head -n 1 || true
