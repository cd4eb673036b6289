# SPDX-License-Identifier: Apache-2.0
# A dataset becomes the files of other programs, and they become the same dataset again.
printf '%s\n' '{"text": "one"}' '{"text": "two words"}' '{"text": ""}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix web --append-eod 2> /dev/null
inspect_dataset convert --help

inspect_dataset convert web_text_document --to nanoset --output-prefix a || echo "exit $?"
inspect_dataset convert web_text_document --to nanoset --output-prefix a --lossy
cat a.ds.metadata && echo
inspect_dataset convert a.ds --output-prefix back
inspect_dataset verify back
cmp back.bin web_text_document.bin
cmp back.idx web_text_document.idx
inspect_dataset convert back --to nanoset --output-prefix b --lossy
cmp a.ds b.ds
cmp a.ds.index b.ds.index
cmp a.ds.metadata b.ds.metadata
inspect_dataset show back --doc 1

inspect_dataset convert web_text_document --to olmo --output-prefix o --lossy
gunzip -c o.csv.gz
inspect_dataset convert o.npy --from olmo --dtype uint16 --output-prefix back --overwrite
cmp back.bin web_text_document.bin

inspect_dataset convert web_text_document --to llm.c --output-prefix s --shard-tokens 7 --eod-id 0 --lossy
inspect_dataset convert 's_*.bin' --eod-id 0 --output-prefix back --overwrite --json
cmp back.bin web_text_document.bin

# The type of a dataset changes, and its description follows.
inspect_dataset convert web_text_document --output-dtype int32 --output-prefix wide
inspect_dataset verify wide
inspect_dataset convert wide --output-dtype uint16 --output-prefix narrow
for ending in bin idx sum src meta; do cmp narrow.$ending web_text_document.$ending; done
ls
