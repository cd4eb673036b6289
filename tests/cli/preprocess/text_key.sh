# SPDX-License-Identifier: Apache-2.0
# Reads texts of nested objects, together with texts of plain keys.
echo '{"meta": {"text": "in"}, "title": "T", "meta.text": "plain"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --text-key meta.text --json-keys title 2> log
cat out_meta.text_document.bin out_title_document.bin | tr -d '\0'
echo
preprocess_bytes --input in.jsonl --output-prefix plain --json-keys meta.text 2> log
tr -d '\0' < plain_meta.text_document.bin
echo
preprocess_bytes --input in.jsonl --output-prefix none --text-key meta..text
