# SPDX-License-Identifier: Apache-2.0
# merge_datasets drops documents whose ids are there twice, and those that tasks were to drop.
if preprocess_data --version | grep -q 'without xxHash'; then
  echo 'needs a build with xxHash' >&2
  exit 77
fi
for i in 1 2 3 4 1; do echo "{\"text\": \"page $i\"}"; done > a.jsonl
for i in 4 5 5 1; do echo "{\"text\": \"page $i\"}"; done > b.jsonl
run() { preprocess_data --tokenizer-type ByteLevelTokenizer "$@" 2> /dev/null; }
mkdir parts
run --input a.jsonl --output-prefix parts/a
run --input b.jsonl --output-prefix parts/b
merge_datasets --input parts --output-prefix out --drop-duplicates --json
cat out.duplicates
inspect_dataset verify out
grep -o '"options": {[^}]*}' out.meta
# Without .src files, the places are not known.
mkdir bare
cp parts/*.bin parts/*.idx bare
cp parts/a*.sum bare
merge_datasets --input bare --output-prefix bare_out --drop-duplicates --memory 1 2>&1 | grep -E 'dropped|wrote|written'
cmp out.bin bare_out.bin
merge_datasets --input parts --output-prefix shuffled --drop-duplicates --shuffle-documents 7 2>&1 | grep -E 'dropped|wrote|written'
merge_datasets --input bare --output-prefix bare_shuffled --drop-duplicates --shuffle-documents 7 2>&1 | grep -E 'dropped|wrote|written'
# A dataset without duplicates can be merged again.
mkdir again
for file in out.*; do cp "$file" "again/1.${file#out.}"; cp "$file" "again/2.${file#out.}"; done
merge_datasets --input again --output-prefix twice 2>&1 | grep -E 'documents|duplicates'
grep -o '"options": {[^}]*}' twice.meta
merge_datasets --input again --output-prefix once --drop-duplicates 2>&1 | grep -E 'documents|dropped'
grep -o '"options": {[^}]*}' once.meta
grep -o '"duplicates": [0-9]*' once.meta
# Tasks
for by in ids text; do
  mkdir $by
  for task in 0 1 2; do run --input a.jsonl b.jsonl --output-prefix $by/t --drop-duplicates $by --task $task/3; done
  ls $by | grep 1-of
  run --input a.jsonl b.jsonl --output-prefix one_$by --drop-duplicates $by
  merge_datasets --input $by --output-prefix merged_$by 2>&1 | grep -E 'documents|dropped'
  for suffix in bin idx meta sum src duplicates; do cmp merged_$by.$suffix one_${by}_text_document.$suffix; done
done
merge_datasets --input ids --output-prefix both --drop-duplicates 2>&1 | grep dropped
echo refusals
merge() { merge_datasets --input "$1" --output-prefix refused "${@:2}" || echo "status $?"; }
merge text --drop-duplicates
merge parts --memory 0
merge parts --memory 1
merge parts --memory 1 --drop-duplicates extra
mkdir some
cp text/*-of-* some
rm some/*2-of-*
merge some
cp text/*2-of-* some
rm some/*1-of-*.digests
merge some
head -c 40 text/t_00001-of-00003_text_document.digests > some/t_00001-of-00003_text_document.digests
merge some
cp text/*0-of-*.digests some/t_00001-of-00003_text_document.digests
merge some
cp text/*.digests some
printf x | dd of=some/t_00001-of-00003_text_document.bin bs=1 conv=notrunc status=none
merge some
cp text/*.bin some
rm some/*1-of-*.meta
merge some
rm some/*.meta
merge some --drop-duplicates 2> /dev/null
rm refused.*
cp text/*.meta some
rm some/*0-of-*
sed -i 's/"--drop-duplicates": "text"//' some/*.meta
merge some --drop-duplicates
ls -A | grep -E '^refused|millrace|partial' || echo 'nothing is left'
