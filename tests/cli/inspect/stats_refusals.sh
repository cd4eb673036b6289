# SPDX-License-Identifier: Apache-2.0
# Mistakes, and datasets that cannot be counted.
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix a 2> log
echo '{"text": "1 2"}' > ids.jsonl
preprocess_data --input ids.jsonl --output-prefix b --tokenizer-type NullTokenizer --vocab-size 9 2> log
for flags in '--top=-1' '--groups 3' '--ngram 3' '--top-ngrams 0' '--top-ngrams 1 --ngram 0' \
    '--workers 0' '--vocab-size 0' '--duplicate' '--force' '--merge-file x'; do
  code=0
  eval "inspect_dataset stats a_text_document $flags" > out 2> err || code=$?
  echo "$flags: $code: $(head -n 1 err)"
done
for prefix in '' a missing .; do
  code=0
  inspect_dataset stats $prefix > out 2> err || code=$?
  echo "$prefix: $code: $(head -n 1 err)"
done
inspect_dataset stats a_text_document --frequencies none/ids.tsv || echo $?
inspect_dataset stats a_text_document > /dev/full || echo $?
cp a_text_document.bin c.bin
cp a_text_document.idx c.idx
truncate -s -1 c.bin
inspect_dataset stats c --json || echo $?
