# SPDX-License-Identifier: Apache-2.0
# File names contain the MD5 of the description. The second run finds the cache. A truncated file is
# built again.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
echo '{"class": "a.Tokenizer", "vocab_size": "300"}' > tokenizer.json
prepare() {
  inspect_dataset prepare-cache --data-path preprocess_lines --seq-length 4 --data-cache-path cache \
      --tokenizer-description tokenizer.json "$@"
}
prepare --split 1,1,0 --train-samples 50 --valid-samples 5
ls cache
md5sum cache/* | cut -c 1-32
prepare --split 1,1,0 --train-samples 50 --valid-samples 5 --json
for file in cache/*-train-sample_index.npy; do truncate -s -1 "$file"; done
prepare --split 1,1,0 --train-samples 50 --valid-samples 5
cat cache/*-valid-description.txt
echo
# The default split contains spaces. Parts may have separate data.
prepare --train-samples 3 | sed 's/;.*//'
inspect_dataset prepare-cache --train-data-path preprocess_lines --valid-data-path preprocess_lines \
    --valid-samples 7 --full-validation --seq-length 4 --data-cache-path cache --threads 1 \
    --tokenizer-description tokenizer.json --keep-partial-validation --no-extra-token
