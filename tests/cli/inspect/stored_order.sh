# SPDX-License-Identifier: Apache-2.0
# Runs `where`, `audit` and `simulate` with a dataset in stored order, and tests which options that
# order refuses.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
stored=(preprocess_lines --order stored --seq-length 10 --ranks 2 --micro-batch-size 2)
inspect_dataset where "${stored[@]}" --step 1 --rank 1 --slot 0
inspect_dataset where "${stored[@]}" --document 12
inspect_dataset where "${stored[@]}" --document 12 --train-samples 20
inspect_dataset where "${stored[@]}" --step 7 --rank 0 --slot 0 || echo "exit $?"
inspect_dataset audit "${stored[@]}"
inspect_dataset audit "${stored[@]}" --dataloader-type cyclic --first-step 6 --last-step 9
inspect_dataset audit preprocess_lines --order stored --seq-length 10 --ranks 3 --full-validation
inspect_dataset simulate "${stored[@]}" --compute-ms 0 --steps 2 --full-speed-steps 0 --json |
  grep -o '"steps": 2\b' | head -1
echo '{"millrace_state": 1, "order": "stored", "seed": 0, "edits": [{"skip_samples": [4, 8], "why": "spike"}]}' > state.json
inspect_dataset where "${stored[@]}" --state state.json --step 1 --rank 0 --slot 0
fails() { inspect_dataset where "$@" --step 0 || echo "exit $?"; }
fails "${stored[@]}" --seed 5
fails "${stored[@]}" --packing best_fit
fails "${stored[@]}" --split 1,1,1
fails --data-path 1 preprocess_lines 1 preprocess_lines --order stored --seq-length 10
fails preprocess_lines --seq-length 10
