# SPDX-License-Identifier: Apache-2.0
# Keeps or drops documents: the result is what preprocess_data makes of the lines that are left.
cat > in.jsonl << 'LINES'
{"text": "a red fox"}

{"text": "none here"}
{"text": "a red fox"}
{"text": ""}
{"text": "foxes"}
{"text": "none here"}
LINES
made() {  # NAME: makes a dataset of NAME.jsonl
  preprocess_bytes --input $1.jsonl --output-prefix $1 --append-eod --overwrite 2> log
}
same() {  # NAME SED: compares with the lines that SED leaves
  sed "$2" in.jsonl > some.jsonl
  made some
  cmp $1.bin some_text_document.bin
  cmp $1.idx some_text_document.idx
  inspect_dataset verify $1 | sed 's/root [0-9a-f]*/root .../'
}
made in
a=in_text_document
inspect_dataset filter $a --output-prefix b --keep --documents '0 3-4'
same b '2,4d;7d'
inspect_dataset show b --doc 1 | head -3
inspect_dataset where b --order stored --seq-length 4 --document 1 2> /dev/null | head -1
printf '5\n1-2\n' > list
inspect_dataset filter $a --output-prefix b --drop --documents list --overwrite --json |
    sed 's/"[0-9a-f]\{64\}"/root/'
same b '3,4d;7d'
inspect_dataset filter $a --dry-run --duplicates
inspect_dataset filter $a --output-prefix c --duplicates --workers 2
same c '4d;7d'
(inspect_dataset diff $a c || true) | tail -4
inspect_dataset search $a --text fox --hits 100 --json > hits.json
inspect_dataset filter $a --output-prefix d --drop --hits-from hits.json
same d '/fox/d'
# Filtered datasets can be merged, and the .meta says what they are.
mkdir parts
for file in b c; do
  for end in bin idx meta sum src; do cp $file.$end parts/$file.$end; done
done
merge_datasets --input parts --output-prefix merged 2> log
inspect_dataset verify merged | sed 's/root [0-9a-f]*/root .../'
grep -o '"filter[^,]*' c.meta merged.meta | sed 's/root [0-9a-f]*/root .../'
# Without sidecars there are checksums only.
rm $a.src $a.meta $a.sum
inspect_dataset filter $a --output-prefix e --keep --documents 1
ls e.*
