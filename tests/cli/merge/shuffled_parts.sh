# SPDX-License-Identifier: Apache-2.0
# A .src of another dataset is reported. A shuffled dataset can be merged and shuffled again.
for i in 1 2 3 4; do printf '{"text": "text %s"}\n' "$i"; done > 1.jsonl
cat 1.jsonl 1.jsonl > 2.jsonl
mkdir parts again
preprocess_bytes --input 1.jsonl 1.jsonl --output-prefix parts/two 2> /dev/null
preprocess_bytes --input 2.jsonl --output-prefix one 2> /dev/null
cp parts/two_text_document.src kept
cp one_text_document.src parts/two_text_document.src
status=0
merge_datasets --input parts --output-prefix out --shuffle-documents 7 || status=$?
echo "= $status" >&2
test "$(echo out*)" = 'out*'
mv kept parts/two_text_document.src
merge_datasets --input parts --output-prefix again/1 --shuffle-documents 7 2> /dev/null
merge_datasets --input parts --output-prefix again/2 --shuffle-documents 8 2> /dev/null
preprocess_bytes --input 2.jsonl --output-prefix again/3 --partitions 2 2> /dev/null
merge_datasets --input again --output-prefix mixed
grep -o '"options": {[^}]*}' mixed.meta
inspect_dataset verify mixed
merge_datasets --input again --output-prefix shuffled --shuffle-documents 9 2> /dev/null
grep -o '"options": {[^}]*}' shuffled.meta
inspect_dataset verify shuffled > /dev/null
