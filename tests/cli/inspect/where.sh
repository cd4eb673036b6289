# SPDX-License-Identifier: Apache-2.0
# Looks up the documents and lines of a slot, and the slots of a document. Does the same without a
# .src, and for blends.
golden=$CASE_DIR/../../golden
cp "$golden"/megatron/preprocess_lines.{bin,idx} .
cp "$golden"/sidecars/preprocess_lines.src .
for end in bin idx; do cp preprocess_lines.$end other.$end; done
for order in instant megatron; do
  run=(--order $order --seq-length 40 --ranks 2 --micro-batch-size 2 --global-batch-size 8)
  inspect_dataset where preprocess_lines "${run[@]}" --step 0 --rank 1 --slot 1
  inspect_dataset where preprocess_lines "${run[@]}" --document 12
  inspect_dataset where other "${run[@]}" --train-samples 40 --document 12 --json
  inspect_dataset where --data-path 0.7 preprocess_lines 0.3 other "${run[@]}" --train-samples 40 \
      --step 0 --rank 0 --slot 1 --json
  inspect_dataset where --data-path 0.7 preprocess_lines 0.3 other "${run[@]}" --train-samples 40 \
      --document 12 --of other
done
# The slots of a document must contain that document.
inspect_dataset where other --order instant --seq-length 40 --document 12 | tail -n +2 |
    sed 's/^step \([0-9]*\),.*/\1/' | while read -r step; do
  inspect_dataset where other --order instant --seq-length 40 --step "$step" | grep 'document 12,'
done
