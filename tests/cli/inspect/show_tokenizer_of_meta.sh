# SPDX-License-Identifier: Apache-2.0
# `show` decodes with the dataset's tokenizer. It refuses another tokenizer without --force.
echo '{"text": "abc"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix bytes 2> log
inspect_dataset show bytes_text_document --doc 0
echo '{"text": "5 7"}' > ids.jsonl
preprocess_data --input ids.jsonl --output-prefix ids --tokenizer-type NullTokenizer \
  --vocab-size 100 --null-tokenizer-eod-id 3 2> log
inspect_dataset show ids_text_document --doc 0 --json | grep -o '"text": .*"'
tiny=$CASE_DIR/../../golden/tiny_bpe
gpt2=(--tokenizer-type GPT2BPETokenizer --vocab-file "$tiny/vocab.json" --merge-file "$tiny/merges.txt")
preprocess_data --input in.jsonl --output-prefix gpt2 "${gpt2[@]}" 2> log
inspect_dataset show gpt2_text_document --doc 0 | tail -n 1
mkdir files elsewhere
cp "$tiny"/{vocab.json,merges.txt} files
preprocess_data --input in.jsonl --output-prefix near --tokenizer-type GPT2BPETokenizer \
  --vocab-file files/vocab.json --merge-file files/merges.txt 2> log
grep -o '"flags": [^]]*]' near_text_document.meta
(cd elsewhere && inspect_dataset show ../near_text_document --doc 0 | tail -n 1)
cp files/merges.txt merges.old
tail -n +5 merges.old > files/merges.txt
inspect_dataset show near_text_document --doc 0 | tail -n 1
rm files/vocab.json
inspect_dataset show near_text_document --doc 0 | tail -n 1
mkfifo files/vocab.json  # must not be opened
inspect_dataset show near_text_document --doc 0 | tail -n 1
sed 's/"--vocab-file=files.vocab.json"/"--trust-remote-code", "--no-such-flag"/' near_text_document.meta > x
mv x near_text_document.meta
inspect_dataset show near_text_document --doc 0 | tail -n 1
inspect_dataset show gpt2_text_document --doc 0 "${gpt2[@]}" | tail -n 1
inspect_dataset show gpt2_text_document --doc 0 --tokenizer-type ByteLevelTokenizer || echo "= $?"
inspect_dataset show bytes_text_document --doc 0 "${gpt2[@]}" || echo "= $?"
inspect_dataset show bytes_text_document --doc 0 "${gpt2[@]}" --force | grep -c text:
inspect_dataset show bytes_text_document --doc 0 --force 2> log || head -n 1 log
