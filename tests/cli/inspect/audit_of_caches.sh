# SPDX-License-Identifier: Apache-2.0
# Audits an index cache: first a sound one, then one that serves a sample twice and another sample
# never.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
echo '{"class": "a.Tokenizer", "vocab_size": "300"}' > tokenizer.json
data=(--data-path preprocess_lines --split 1,0,0 --seq-length 10 --data-cache-path cache
      --tokenizer-description tokenizer.json)
audit() { inspect_dataset audit "${data[@]}" --order megatron --global-batch-size 4 "$@" || echo "exit $?"; }
audit 2>&1 | sed 's/cache\/[0-9a-f]*/cache\/MD5/'
inspect_dataset prepare-cache "${data[@]}" > /dev/null
audit
# The index has a header of 128 bytes, then 4 bytes per entry. Copies entry 3 over entry 8.
shuffle=$(echo cache/*-train-shuffle_index.npy)
dd if="$shuffle" of=sample bs=4 skip=35 count=1 status=none
dd if=sample of="$shuffle" bs=4 seek=40 conv=notrunc status=none
audit
audit --json
inspect_dataset where "${data[@]}" --order megatron --step 3
inspect_dataset where "${data[@]}" --order megatron --step 8
