# SPDX-License-Identifier: Apache-2.0
# Runs `where` and `audit` with packed rows, for one dataset and a blend, and tests which runs
# cannot be packed.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
for end in bin idx; do cp preprocess_lines.$end other.$end; done
packed=(--order instant --packing best_fit --seq-length 40 --ranks 2)
inspect_dataset where preprocess_lines "${packed[@]}" --pad-documents-to 4 --step 1 --rank 1 --slot 0
inspect_dataset where preprocess_lines "${packed[@]}" --pad-documents-to 4 --step 1 --rank 1 --slot 0 --json
inspect_dataset where preprocess_lines "${packed[@]}" --train-samples 20 --document 12
inspect_dataset where --data-path preprocess_lines other "${packed[@]}" --train-samples 20 --document 12 --of other
inspect_dataset audit preprocess_lines "${packed[@]}" --train-samples 18
inspect_dataset audit --data-path preprocess_lines other "${packed[@]}" --train-samples 12 --json
echo '{"millrace_state": 1, "seq_len": 40, "packing": "best_fit", "edits": [
  {"block_documents": [12, 13], "source": "preprocess_lines", "why": "leaked"}]}' > state.json
inspect_dataset audit preprocess_lines "${packed[@]}" --train-samples 8 --state state.json
fails() { inspect_dataset audit preprocess_lines --seq-length 40 "$@" || echo "exit $?"; }
fails --order megatron --packing best_fit
fails --order instant --packing worst_fit
fails --order instant --pad-documents-to 4
# Documents packed at once: longer ones are refused, or left out and listed.
planned=(preprocess_lines --order instant --seq-length 40 --ranks 2 --train-samples 8)
fails --order instant --packing first_fit_shuffle
fails --order instant --packing best_fit --leave-out-overlong
inspect_dataset audit "${planned[@]}" --packing first_fit_shuffle --leave-out-overlong
inspect_dataset where "${planned[@]}" --packing modified_first_fit_decreasing --leave-out-overlong --document 12
inspect_dataset show "${planned[@]}" --packing one_per_row --leave-out-overlong --pad-documents-to 8 --step 0 --rank 1 \
    --json
# The last token of a document is only a label.
labels=("${planned[@]}" --packing first_fit_decreasing --leave-out-overlong --last-token-as-label --pad-documents-to 4)
inspect_dataset show "${labels[@]}" --step 0 --rank 0
inspect_dataset show "${labels[@]}" --step 0 --rank 0 --json
inspect_dataset audit "${labels[@]}"
inspect_dataset where "${labels[@]}" --document 13
fails --order instant --packing best_fit --last-token-as-label
ls
