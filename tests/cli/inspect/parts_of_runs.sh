# SPDX-License-Identifier: Apache-2.0
# Runs `where` and `audit` with the parts `valid` and `test`, with separate data for each part, and
# with --full-validation.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
for end in bin idx; do cp preprocess_lines.$end other.$end; done
run=(--order megatron --seq-length 10 --ranks)
split=(preprocess_lines --split 5,3,2 "${run[@]}")
inspect_dataset where "${split[@]}" 2 --step 0 --slot 0 | head -2
for part in train valid test; do
  inspect_dataset where "${split[@]}" 2 --part $part --step 0 --slot 0 | head -2
done
inspect_dataset audit "${split[@]}" 2 --part test --test-samples 6
inspect_dataset audit "${split[@]}" 2 --part valid --full-validation
inspect_dataset where "${split[@]}" 3 --part valid --full-validation --micro-batch-size 4 --step 1 --rank 2
inspect_dataset audit "${split[@]}" 4 --part valid --full-validation
# The flag does not affect the part `train`.
inspect_dataset where "${split[@]}" 2 --full-validation --step 0 --slot 0 | head -1
own=(--train-data-path preprocess_lines --valid-data-path preprocess_lines other "${run[@]}" 2)
inspect_dataset where "${own[@]}" --part valid --step 1 --rank 1 --slot 0
inspect_dataset audit "${own[@]}" --part valid --full-validation --json
inspect_dataset audit "${own[@]}" --no-extra-token
echo preprocess_lines other > data.txt
inspect_dataset where --data-args-path data.txt --split 1,1 "${run[@]}" 2 --step 1 --rank 1 --slot 0 | head -1
inspect_dataset where --data-args-path data.txt --order instant --seq-length 10 --train-samples 8 --step 1 --slot 0 | head -1
inspect_dataset audit preprocess_lines --order instant --full-validation --seq-length 40 --ranks 4
fails() { inspect_dataset where "$@" --step 0 || echo "exit $?"; }
fails "${split[@]}" 2 --part validation
fails "${own[@]}" --part test
fails "${own[@]}" --part valid --full-validation --multiple-validation-sets
fails "${split[@]}" 1000 --part valid --full-validation
fails "${split[@]}" 2 --train-samples -1
fails "${split[@]}" 2 --valid-samples -1
fails "${split[@]}" 2 --part valid --full-validation --rampup-batch-size 2 2 20 --global-batch-size 8
for flag in "--part valid" "--valid-samples 3" "--train-data-path other" "--no-extra-token" \
    "--mid-level-dataset-surplus 0.1" "--multiple-validation-sets"; do
  # shellcheck disable=SC2086  # a flag and its value
  fails preprocess_lines --order instant --seq-length 10 $flag
done
