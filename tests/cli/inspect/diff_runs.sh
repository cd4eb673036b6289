# SPDX-License-Identifier: Apache-2.0
# Compares what runs serve. Flags after -- replace those before it.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
for end in bin idx; do cp preprocess_lines.$end copy.$end; done
megatron=(--order megatron --seq-length 10 --train-samples 48 --global-batch-size 12 --ranks 4)
instant=(--order instant --seq-length 10 --train-samples 40 --global-batch-size 4 --ranks 2)
differs() {
  echo "-- ${*:2}"
  local -n run=$1
  inspect_dataset diff preprocess_lines "${run[@]}" -- "${@:2}" 2> err || echo "exit $?"
  grep -v assumed err || true
}
# These serve the same.
differs megatron --ranks 3
differs megatron --ranks 3 --micro-batch-size 4 --consumed-samples 12
differs megatron --data-path copy
differs megatron --train-iters 4
# These do not.
differs megatron --seed 7
differs megatron --split 1,1,0
differs megatron --seq-length 11
differs megatron --global-batch-size 24
differs megatron --order stored --split 1
differs megatron --dataloader-type cyclic
differs instant --seed 7 --json
differs instant --train-samples 46
differs instant --data-path 0.5 preprocess_lines 0.5 copy
instant=(--order instant --seq-length 10 --train-samples 40 --global-batch-size 4)
instant+=(--data-path 0.5 preprocess_lines 0.5 copy)
echo '-- weights'
inspect_dataset diff "${instant[@]}" -- --data-path 0.6 preprocess_lines 0.4 copy --list 3 2> err ||
    echo "exit $?"
# A state skips samples 5 and 6.
echo '{"millrace_state": 1, "order": "megatron", "seq_len": 10, "edits": [
  {"skip_samples": [5, 7], "why": "spike"}]}' > state.json
differs megatron --state state.json --list 2
