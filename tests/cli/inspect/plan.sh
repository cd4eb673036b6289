# SPDX-License-Identifier: Apache-2.0
# Plans small jobs. Measured times differ between runs, so they are replaced by N.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
run=(--order instant --seq-length 12 --train-samples 200 --global-batch-size 16 --step-seconds 0.5
  --node-memory-gib 8 --file-system shared)
inspect_dataset plan preprocess_lines "${run[@]}" --nodes 2 --tensor-model-parallel-size 2 \
  --pipeline-model-parallel-size 2 --mb-per-second 0.0001 --checkpoint-seconds 300 --mtbf-hours 24 |
  sed -E 's/^(start +order) .*/\1 N/'
inspect_dataset plan preprocess_lines "${run[@]}" --context-parallel-size 2 --json |
  sed -E 's/("order_seconds": )[0-9.e-]+/\1N/'
# Rows are packed: the padding of each dataset.
packed=(--data-path preprocess_lines --order instant --seq-length 40 --packing first_fit_decreasing
  --leave-out-overlong --train-samples 20 --global-batch-size 8 --step-seconds 1)
inspect_dataset plan "${packed[@]}" | sed -n '/^data/,/padding/p'
inspect_dataset plan "${packed[@]}" --json | grep -o '"rows".*"left_out": [0-9]*'
mkdir room
inspect_dataset plan preprocess_lines "${run[@]}" --ranks 8 --probe room --probe-seconds 0.1 |
  sed -nE 's/^(probe) .* in room, reader .*/\1 of room/p; s/ (in|every|from) [0-9.]+ [mnu]?s/ \1 N/gp'
ls room
for bad in '' '--step-seconds 0' '--step-seconds 1 --ranks 3' '--step-seconds 1 --nodes 0' \
    '--step-seconds 1 --probe absent' '--step-seconds 1 --mtbf-hours 2' \
    '--step-seconds 1 --file-system tape' '--step-seconds 1 --tensor-model-parallel-size 3' \
    '--step-seconds 1 --reader tape'; do
  # shellcheck disable=SC2086  # flags and values
  inspect_dataset plan preprocess_lines --order instant --seq-length 10 $bad 2>&1 |
    grep -v '^usage' || true
done
