# SPDX-License-Identifier: Apache-2.0
# Files that do not belong to a whole dataset are reported, so that a missing shard is noticed.
preprocess() { preprocess_bytes --input in.jsonl --output-prefix "$1" 2> /dev/null; }
echo '{"text": "a"}' > in.jsonl
for folder in link left hidden; do mkdir $folder && preprocess $folder/x; done
ln -s nowhere.bin link/c.bin
ln -s nowhere.idx link/c.idx
touch left/x_text_document.bin.partial hidden/.hidden
for folder in link left hidden; do
  merge_datasets --input $folder --output-prefix merged 2> err && echo "$folder: merged"
  sed 's/link\/c\.[a-z]*/link\/c.*/' err
done
# A prefix without a file name would give hidden files.
merge_datasets --input link --output-prefix "$PWD/" 2> /dev/null || echo "= $?"
test ! -e merged.bin
