# SPDX-License-Identifier: Apache-2.0
# Each dataset counts its own empty documents, after a resumed run as well, and is what it should be.
printf '%s\n' '{"text": "a", "title": ""}' '{"text": "b", "title": "x"}' '{"text": "", "title": "y"}' \
  '{"text": [], "title": "z"}' > a.jsonl
run() {
  preprocess_data --input a.jsonl --output-prefix out --tokenizer-type ByteLevelTokenizer \
    --json-keys text title --append-eod --json "$@" 2> log
  grep 'empty' log
}
run | grep -o '"empty_documents": [0-9]*'
run --resume | grep -o '"empty_documents": [0-9]*'
run --overwrite --partitions 3 | grep -o '"empty_documents": [0-9]*'
inspect_dataset verify out_text_document out_title_document | grep -c 'the .meta matches'
