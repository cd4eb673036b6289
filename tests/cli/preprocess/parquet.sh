# SPDX-License-Identifier: Apache-2.0
# A Parquet file gives the tokens of the same rows as JSON lines. A folder may be a snapshot of a data
# set from Hugging Face, with other files and links.
golden="$CASE_DIR/../../golden"
same() {
  for suffix in bin idx sum; do cmp "$1.$suffix" "$2.$suffix"; done
}
cp "$golden"/parquet/texts.{jsonl,parquet} "$golden"/parquet/chats.{jsonl,parquet} .
for kind in jsonl parquet; do
  preprocess_bytes --input texts.$kind --output-prefix $kind --append-eod 2> log
  preprocess_bytes --input texts.$kind --output-prefix $kind --text-key meta.text 2> log
  preprocess_data --input chats.$kind --output-prefix $kind --messages-key messages \
      --tokenizer-type HuggingFaceTokenizer --tokenizer-model "$golden/tiny_chat" 2> log
done
same jsonl_text_document parquet_text_document
same jsonl_meta.text_document parquet_meta.text_document
same jsonl_messages_document parquet_messages_document
cmp jsonl_messages_document.mask parquet_messages_document.mask
inspect_dataset verify parquet_text_document
inspect_dataset show parquet_text_document --doc 17 | sed -n 1,2p
inspect_dataset show parquet_text_document --doc 17 --json | grep -o '"source": {[^}]*}'

mkdir -p blobs snapshot/data
echo 'A data set.' > snapshot/README.md
echo '{}' > snapshot/dataset_infos.json
touch snapshot/.gitattributes
mv texts.parquet blobs/1
ln -s ../../blobs/1 snapshot/data/train-00000-of-00002.parquet
cp blobs/1 snapshot/data/train-00001-of-00002.parquet
preprocess_bytes --input snapshot --output-prefix snapshot --append-eod 2> log
grep note log
cat texts.jsonl texts.jsonl > twice.jsonl
preprocess_bytes --input twice.jsonl --output-prefix twice --append-eod 2> log
same snapshot_text_document twice_text_document

mkdir parts
for task in 0 1 2; do
  preprocess_bytes --input snapshot --output-prefix parts/p --append-eod --task $task/3 2> log
done
merge_datasets --input parts --output-prefix merged 2> log
for suffix in bin idx sum src meta; do cmp merged.$suffix snapshot_text_document.$suffix; done
