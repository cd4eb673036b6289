# SPDX-License-Identifier: Apache-2.0
# Audits both orders: whole runs, some of their steps, and blends. The counts of rows must add up to
# the tokens.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
for end in bin idx; do cp preprocess_lines.$end other.$end; done
ranks=(--ranks 2 --micro-batch-size 1 --global-batch-size 4)
for order in instant megatron; do
  run=(--order $order --seq-length 10 "${ranks[@]}")
  inspect_dataset audit preprocess_lines "${run[@]}"
  inspect_dataset audit preprocess_lines "${run[@]}" --train-samples 60 --first-step 1 --last-step 8
  inspect_dataset audit --data-path 3 preprocess_lines 1 other "${run[@]}" --train-samples 40 --json
done
inspect_dataset audit preprocess_lines --order megatron --seq-length 10 --split 1,1,0
for bad in '--last-step 30' '--first-step 3 --last-step 3' '--first-step -1' '--global-batch-size 80'; do
  # shellcheck disable=SC2086  # flags and values
  inspect_dataset audit preprocess_lines --order instant --seq-length 10 $bad || echo "exit $?"
done
