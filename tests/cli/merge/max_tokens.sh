# SPDX-License-Identifier: Apache-2.0
# The parts of tasks with --max-tokens are merged to what one process writes.
for i in 1 2 3 4 5 6; do echo "{\"text\": \"abc\", \"title\": \"t\"}"; done > a.jsonl
{ echo 'no JSON'; echo; echo '{"text": "defg", "title": ""}'; echo '{"text": "h", "title": "u"}'; } > b.jsonl
run() {
  preprocess_data --input a.jsonl b.jsonl --tokenizer-type ByteLevelTokenizer --json-keys text title \
    --on-bad-record quarantine --overwrite "$@" 2>&1
}
# Task 0 has the first lines of a.jsonl, task 2 the lines of b.jsonl.
for tokens in 1 4 11 18 20 100; do
  echo "--max-tokens $tokens"
  rm -rf text title one
  mkdir -p text title one
  run --output-prefix one/whole --max-tokens $tokens > /dev/null
  for task in 0 1 2; do run --output-prefix part --max-tokens $tokens --task $task/3 > /dev/null; done
  for key in text title; do
    mv part*_"$key"_document.* "$key"
    merge_datasets --input "$key" --output-prefix merged --overwrite 2>&1 | grep -E 'documents|max-tokens'
    for suffix in bin idx meta sum src bad; do
      if [[ -e one/whole_${key}_document.$suffix || -e merged.$suffix ]]; then
        cmp "one/whole_${key}_document.$suffix" merged.$suffix
      fi
    done
  done
done
ls text
merge_datasets --input text --output-prefix shuffled --shuffle-documents 1 --json
run --output-prefix part --max-tokens 7 --task 1/3 | grep 'max-tokens was reached'
rm part*
# The copy of a repaired part claims no more than the part.
mkdir repaired
for task in 0 1 2; do run --output-prefix repaired/part --max-tokens 14 --task $task/3 > /dev/null; done
rm repaired/*_title_*
part=repaired/part_00001-of-00003_text_document
printf x | dd of=$part.bin bs=1 conv=notrunc status=none
merge_datasets --input repaired --output-prefix mended || echo "status $?"
inspect_dataset verify --repair checksums $part > /dev/null || true
mv $part.sum.repaired $part.sum
mv $part.meta.repaired $part.meta
merge_datasets --input repaired --output-prefix mended 2>&1 | grep -E 'documents|wrote'
grep -o '"sum": [0-9]' mended.meta
rm mended*
echo refusals
mkdir some other
cp text/*-of-* some
rm some/*2-of-*
merge_datasets --input some --output-prefix m || echo "status $?"
cp text/*2-of-* some
rm some/*1-of-*.cuts
merge_datasets --input some --output-prefix m || echo "status $?"
cp title/*1-of-*_title_document.cuts some/part_00001-of-00003_text_document.cuts
merge_datasets --input some --output-prefix m || echo "status $?"
cp text/*0-of-*.cuts some/part_00001-of-00003_text_document.cuts
merge_datasets --input some --output-prefix m || echo "status $?"
head -c 60 text/part_00001-of-00003_text_document.cuts > some/part_00001-of-00003_text_document.cuts
merge_datasets --input some --output-prefix m || echo "status $?"
cp text/*.cuts some
rm some/*.meta
merge_datasets --input some --output-prefix m || echo "status $?"
cp text/*.meta some
sed -i 's/"--max-tokens": "100"/"--max-tokens": "x100"/' some/*.meta
merge_datasets --input some --output-prefix m || echo "status $?"
# Without its .cuts, a task is not complete.
rm -r some/*
alone() {
  preprocess_data --input a.jsonl b.jsonl --tokenizer-type ByteLevelTokenizer --output-prefix some/part --max-tokens 100 --task 1/3 "$@"
}
alone 2> /dev/null
rm some/*.cuts
alone --resume || echo "status $?"
# A task had the same input with other lines.
rm -r some/*
for i in 1 2 3 4; do echo '{"text": "abcdefghij"}'; done > c.jsonl
part() {
  preprocess_data --input c.jsonl --tokenizer-type ByteLevelTokenizer --output-prefix some/c --max-tokens "$@" 2> /dev/null
}
part 30 --task 0/2
{ echo '{"text": "abcdefghi"}'; echo '{"text": "abcdefghij"}'; echo '{"text": "abcdefghij"}'; echo '{"text": "abcdefghijk"}'; } > c.jsonl
part 30 --task 1/2
merge_datasets --input some --output-prefix m || echo "status $?"
for task in 0 1 2; do run --output-prefix other/p --max-tokens $((9 + task)) --task $task/3 > /dev/null; done
rm other/*_title_*
merge_datasets --input other --output-prefix m || echo "status $?"
ls -A | grep -E 'm\.|millrace' || echo 'nothing is left'
