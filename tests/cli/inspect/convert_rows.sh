# SPDX-License-Identifier: Apache-2.0
# A dataset becomes packed rows for Megatron-Bridge; what does not fit, and bad flags, get a sentence.
printf '%s\n' '{"text": "one"}' '{"text": "two words"}' '{"text": ""}' '{"text": "a"}' '{"text": "twelve bytes"}' \
    '{"text": "three"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix web 2> /dev/null
tell() { inspect_dataset convert web_text_document --to bridge --output-prefix rows "$@" || echo "exit $?"; }
tell --seq-length 12
tell --seq-length 12 --lossy
cat rows.packing.json
tell --seq-length 8 --lossy --json --overwrite --packing modified_first_fit_decreasing
tell --seq-length 12 --pad-documents-to 4 --pad-id 7 --lossy --overwrite --compression none \
    --packing first_fit_decreasing --seed 3 --json
tell --seq-length 12 --lossy
tell --lossy
tell --seq-length 12 --packing best_fit
tell --seq-length 12 --packing worst_fit
tell --seq-length 12 --pad-documents-to 5
tell --seq-length 12 --pad-documents-to 4
tell --seq-length 12 --seed 4294967296
tell --seq-length 12 --compression gzip
tell --seq-length 12 --eod-id 3
tell --seq-length 12 --shard-tokens 5
inspect_dataset convert web_text_document --to bridge --seq-length 2 --lossy --output-prefix other || echo "exit $?"
inspect_dataset convert web_text_document web_text_document --to bridge --seq-length 12 --output-prefix y || echo "exit $?"
inspect_dataset convert web_text_document --to bridge --seq-length 12 --lossy --output-prefix no/folder/y || echo "exit $?"
inspect_dataset convert rows.idx.parquet --from bridge --output-prefix y || echo "exit $?"
inspect_dataset convert web_text_document --to nanoset --seq-length 12 --output-prefix y || echo "exit $?"
ls
