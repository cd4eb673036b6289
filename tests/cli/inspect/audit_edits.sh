# SPDX-License-Identifier: Apache-2.0
# Audits runs with edits: the report has rows for dropped and replayed samples, and still finds no
# problem. Also passes states of other runs.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
state() {
  echo '{"millrace_state": 1, "order": "'"$1"'", "seq_len": 10, "global_batch": 4, "edits": [
    {"skip_samples": [5, 7], "why": "spike"},
    {"replay_steps": [0, 1], "at_step": 2, "why": "again"},
    {"block_documents": [12, 13], "source": "preprocess_lines", "why": "leaked"}]}' > state.json
}
for order in instant megatron; do
  state $order
  run=(--order $order --seq-length 10 --ranks 2 --micro-batch-size 2 --train-samples 40 --state state.json)
  inspect_dataset audit preprocess_lines "${run[@]}"
  inspect_dataset audit preprocess_lines "${run[@]}" --first-step 1 --last-step 3 --json
done
inspect_dataset audit preprocess_lines "${run[@]}" --last-step 10 || echo "exit $?"
state instant
inspect_dataset audit preprocess_lines "${run[@]}" || echo "exit $?"
inspect_dataset audit preprocess_lines --order instant --seq-length 10 --global-batch-size 4 \
    --state state.json || echo "exit $?"
