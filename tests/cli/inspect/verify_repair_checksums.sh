# SPDX-License-Identifier: Apache-2.0
# New checksums prove that files are as they were written only if the .meta has the same root.
printf '{"text": "one two"}\n{"text": "three"}\n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix a --append-eod 2> log
data=a_text_document
inspect_dataset verify $data --repair checksums
cp $data.sum old.sum
rm $data.sum
inspect_dataset verify $data || echo "exit $?"
inspect_dataset verify $data --repair checksums
cmp $data.sum.repaired old.sum
mv $data.sum.repaired $data.sum
# Changed tokens: the repair says so, and a merge keeps saying it.
printf 'O' | dd of=$data.bin conv=notrunc status=none
inspect_dataset verify $data || echo "exit $?"
inspect_dataset verify $data --repair checksums --json > answer.json
grep -o '"checksums_changed.*' answer.json | sed 's/"sum_root": "[0-9a-f]*"/"sum_root": ROOT/'
inspect_dataset verify $data --repair checksums | tee answer
sed -n 's/^next: //p' answer > next.sh
bash next.sh
inspect_dataset verify $data --json | grep -o '"sum_is_original": [a-z]*'
mkdir parts
preprocess_bytes --input in.jsonl --output-prefix parts/b --append-eod 2> log
for ending in bin idx sum src meta; do cp $data.$ending parts/a.$ending; done
for way in '' --shuffle-documents=7; do
  merge_datasets --input parts --output-prefix both $way --overwrite 2> log
  inspect_dataset verify both --json | grep -o '"sum_is_original": [a-z]*'
  grep -o '"sum": [0-9]*' both.meta
done
# Without a .meta.
rm $data.meta $data.sum
inspect_dataset verify $data --repair checksums
ls $data.*
inspect_dataset verify $data --repair checksums --vocab-size 3 || echo "exit $?"
truncate -s -1 $data.idx
inspect_dataset verify $data --repair checksums || echo "exit $?"
