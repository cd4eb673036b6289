# SPDX-License-Identifier: Apache-2.0
# With a state that has edits, `where` reports the samples that a slot then serves, and the places
# of a blocked document. Also passes states of other runs.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
state() {
  echo '{"millrace_state": 1, "order": "'"$1"'", "seq_len": 40, "global_batch": 4, "edits": [
    {"skip_samples": [1, 3], "why": "spike"},
    {"replay_steps": [0, 1], "at_step": 1, "why": "again"}'"${2-}"']}' > state.json
}
blocked=', {"block_documents": [12, 13], "source": "preprocess_lines", "why": "leaked"}'
for order in instant megatron; do
  run=(--order $order --seq-length 40 --ranks 2 --micro-batch-size 2 --train-samples 20)
  state $order
  inspect_dataset where preprocess_lines "${run[@]}" --state state.json --step 0 --rank 0 --slot 1
  inspect_dataset where preprocess_lines "${run[@]}" --state state.json --step 0 --slot 0 --json
  inspect_dataset where preprocess_lines "${run[@]}" --document 12
  inspect_dataset where preprocess_lines "${run[@]}" --state state.json --document 12
  inspect_dataset where preprocess_lines "${run[@]}" --state state.json --step 4 --rank 1 --slot 1 || echo "exit $?"
  inspect_dataset where preprocess_lines "${run[@]}" --state state.json --step 5 || echo "exit $?"
  state $order "$blocked"
  inspect_dataset where preprocess_lines "${run[@]}" --state state.json --document 12
done
run=(--seq-length 40 --ranks 2 --micro-batch-size 2 --state state.json --step 0)
inspect_dataset where preprocess_lines --order instant "${run[@]}" || echo "exit $?"
inspect_dataset where preprocess_lines --order megatron --seed 5 "${run[@]}" || echo "exit $?"
echo '{"millrace_state": 1, "sead": 5}' > state.json
inspect_dataset where preprocess_lines --order instant "${run[@]}" || echo "exit $?"
echo '{"millrace_state": 1' > state.json
inspect_dataset where preprocess_lines --order instant "${run[@]}" || echo "exit $?"
echo '{"millrace_state": 1, "rampup_batch": [1, 1, 10]}' > state.json
inspect_dataset where preprocess_lines --order instant "${run[@]}" || echo "exit $?"
# A state written by a loader lists its data. Then the order in the state must match the order of
# the flags.
full() {
  echo '{"millrace_state": 1, "seq_len": 40, "global_batch": 4,
    "data": [{"prefix": "elsewhere/preprocess_lines", "weight": 1.0, "tokens": 7}], '"$1"'
    "edits": [{"skip_samples": [0, 1], "why": "spike"}]}' > state.json
}
run=(--seq-length 40 --ranks 2 --micro-batch-size 2 --train-samples 20 --state state.json --step 0 --slot 0)
megatron='"order": "megatron", "weighted": false, "samples": [20, 0, 0], "split": "969, 30, 1",'
full "$megatron"
inspect_dataset where preprocess_lines --order megatron "${run[@]}"
inspect_dataset where preprocess_lines --order megatron --split 1,1,1 "${run[@]}" || echo "exit $?"
inspect_dataset where --data-path 1 preprocess_lines --order megatron "${run[@]}" || echo "exit $?"
full "$megatron"' "sampler": "cyclic",'
inspect_dataset where preprocess_lines --order megatron "${run[@]}" || echo "exit $?"
