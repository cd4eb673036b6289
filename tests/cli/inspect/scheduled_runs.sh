# SPDX-License-Identifier: Apache-2.0
# Runs `where` and `audit` with a blend that changes at certain steps. The state describes these
# changes.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
for end in bin idx; do cp preprocess_lines.$end other.$end; done
# Steps 0 and 1 serve the first dataset, steps 2 and 3 both, and the later steps the second.
data='"data": [{"prefix": "preprocess_lines"}, {"prefix": "other"}],'
state() {
  echo '{"millrace_state": 1, "order": "instant", "seq_len": 10, "global_batch": 4, '"${1-$data}"'
    "schedule": [{"first_step": 0, "sources": [0], "weights": [1.0]},
                 {"first_step": 2, "sources": [0, 1], "weights": [1.0, 1.0]},
                 {"first_step": 4, "sources": [1], "weights": [1.0]}]}' > state.json
}
run=(--data-path preprocess_lines other --order=instant --seq-length 10 --ranks 2 --micro-batch-size 2
  --train-samples 24 --state state.json)
state
for step in 0 1 2 3 4 5; do
  inspect_dataset where "${run[@]}" --step $step --rank 1 --slot 0 | head -1
done
inspect_dataset where "${run[@]}" --document 12 --of other
inspect_dataset where "${run[@]}" --document 12 --of preprocess_lines --json
inspect_dataset audit "${run[@]}"
# With an edit in addition, the samples after it are served earlier. The schedule still counts the
# steps of the run.
state "$data"'"edits": [{"skip_steps": [1, 2], "why": "spike"}],'
inspect_dataset where "${run[@]}" --step 1 --rank 0 --slot 0 --json
inspect_dataset audit "${run[@]}" --last-step 5
# Packed rows, with another schedule.
echo '{"millrace_state": 1, "seq_len": 40, "packing": "best_fit", "extra_token": false, '"$data"'
  "schedule": [{"first_step": 0, "sources": [1], "weights": [1.0]},
               {"first_step": 3, "sources": [0, 1], "weights": [0.5, 0.5]}]}' > state.json
inspect_dataset audit --data-path preprocess_lines other --order instant --packing best_fit --seq-length 40 \
  --ranks 2 --train-samples 12 --state state.json
# The names of the sources differ from the file names.
named='"data": [{"prefix": "a", "name": "web", "tokens": TOKENS}, {"prefix": "b", "name": "code", "tokens": TOKENS}],'
tokens=$(inspect_dataset info preprocess_lines --json | sed 's/.*"tokens": *\([0-9]*\).*/\1/')
state "${named//TOKENS/$tokens}"
inspect_dataset where "${run[@]}" --step 0 --slot 0 | head -1
state "${named//TOKENS/5}"
fails() { inspect_dataset where "$@" --step 0 || echo "exit $?"; }
fails "${run[@]}"
state
common=("${run[@]:3}")
fails --data-path 0.5 preprocess_lines 0.5 other "${common[@]}"
fails preprocess_lines "${common[@]}"
fails --data-path preprocess_lines other --order megatron "${common[@]:1}"
