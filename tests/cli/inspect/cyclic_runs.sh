# SPDX-License-Identifier: Apache-2.0
# Runs `where` and `audit` with Megatron's cyclic sampler, over both orders and packed rows, and
# tests which options it refuses.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
cyclic=(--dataloader-type cyclic --ranks 2 --micro-batch-size 2)
megatron=(preprocess_lines --order megatron --seq-length 10 "${cyclic[@]}")
inspect_dataset where "${megatron[@]}" --step 1 --rank 1 --slot 0
inspect_dataset where "${megatron[@]}" --step 8 --rank 1 --slot 0 --json
inspect_dataset where "${megatron[@]}" --no-data-sharding --document 12
inspect_dataset audit "${megatron[@]}" --train-samples 30
inspect_dataset audit "${megatron[@]}" --no-data-sharding --train-samples 30 --first-step 3 --last-step 9
for packing in none best_fit; do
  inspect_dataset audit preprocess_lines --order instant --packing $packing --seq-length 40 \
      --train-samples 14 "${cyclic[@]}" --json
done
echo '{"millrace_state": 1, "order": "megatron", "sampler": "cyclic", "edits": [
  {"skip_samples": [5, 7], "why": "spike"}]}' > state.json
fails() { inspect_dataset audit preprocess_lines --seq-length 10 "$@" || echo "exit $?"; }
fails --order megatron "${cyclic[@]}" --state state.json
fails --order megatron --state state.json
fails --order megatron "${cyclic[@]}" --global-batch-size 16 --rampup-batch-size 4 4 20
fails --order instant "${cyclic[@]}"
fails --order megatron --no-data-sharding
fails --order megatron --dataloader-type external
fails --order megatron --dataloader-type cyclic --ranks 40
