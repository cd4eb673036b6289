# SPDX-License-Identifier: Apache-2.0
# Samples as the loader serves them: fields, boundaries and documents.
for i in 0 1 2 3 4 5 6 7; do
  printf '{"text": "%s"}\n' "$(printf "$i%.0s" 1 2 3 4 5)"
done > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix in --append-eod 2> log
stored=(in_text_document --order stored --seq-length 8)
inspect_dataset show "${stored[@]}" --step 0 | tr "\0" @
echo '= the same with fields that depend on the eod, a line per token'
inspect_dataset show "${stored[@]}" --iteration 1 --eod-mask-loss --reset-position-ids --as aligned
echo '= a step of two ranks with two micro-batches'
inspect_dataset show "${stored[@]}" --ranks 2 --global-batch-size 4 --step 0 --count 2 --as ids |
  grep -v loss_mask
echo '= rank 1'
inspect_dataset show "${stored[@]}" --ranks 2 --global-batch-size 4 --step 0 --rank 1 --json
echo '= a slot, and the same by its sample'
inspect_dataset show "${stored[@]}" --ranks 2 --global-batch-size 4 --step 0 --rank 1 --slot 1 --as text | tr "\0" @
inspect_dataset show "${stored[@]}" --ranks 2 --global-batch-size 4 --sample 3 --from 2 --context 1
echo '= packed rows'
packed=(in_text_document --order instant --packing best_fit --seq-length 16 --pad-documents-to 8 --seed 1)
inspect_dataset show "${packed[@]}" --step 0 --as aligned
inspect_dataset show "${packed[@]}" --step 0 --json --as aligned
echo '= without a tokenizer'
rm in_text_document.meta
inspect_dataset show "${stored[@]}" --step 2 --as aligned
inspect_dataset show "${stored[@]}" --step 2 --json --eod-mask-loss --eod-id 52
