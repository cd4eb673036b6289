# SPDX-License-Identifier: Apache-2.0
# Runs `where` and `audit` with batch-size ramp-ups, also with edits by steps, and with ramp-ups
# that do not fit.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
ramped=(--seq-length 10 --ranks 2 --global-batch-size 8 --rampup-batch-size 2 2 12 --train-samples 40)
for order in instant megatron; do
  run=(preprocess_lines --order $order "${ramped[@]}")
  inspect_dataset where "${run[@]}" --step 3 --rank 1 --slot 0
  inspect_dataset where "${run[@]}" --step 0 --rank 1 --slot 1 || echo "exit $?"
  inspect_dataset where "${run[@]}" --document 12
  inspect_dataset audit "${run[@]}"
  echo '{"millrace_state": 1, "order": "'$order'", "rampup_batch": [2, 2, 12], "edits": [
    {"skip_steps": [1, 3], "why": "spike"}]}' > state.json
  inspect_dataset audit "${run[@]}" --state state.json --last-step 4 --json
  inspect_dataset audit preprocess_lines --order $order --seq-length 10 --ranks 2 --global-batch-size 8 \
      --train-samples 40 --state state.json || echo "exit $?"
done
fails() { inspect_dataset audit preprocess_lines --order instant --seq-length 10 --ranks 2 "$@" || echo "exit $?"; }
fails --global-batch-size 8 --rampup-batch-size 2 2
fails --global-batch-size 8 --rampup-batch-size 3 1 20
fails --global-batch-size 8 --rampup-batch-size 8 2 20
fails --global-batch-size 8 --rampup-batch-size 2 4 20
