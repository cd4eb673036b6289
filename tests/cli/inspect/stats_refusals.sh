# SPDX-License-Identifier: Apache-2.0
# Mistakes, and datasets that cannot be counted.
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix a 2> log
echo '{"text": "1 2"}' > ids.jsonl
preprocess_data --input ids.jsonl --output-prefix b --tokenizer-type NullTokenizer --vocab-size 9 2> log
printf '{"text": "a"}\n{"tekst": "a"}\n' > bad.jsonl
printf '\n\n' > blank
for flags in '--top=-1' '--groups 3' '--ngram 3' '--top-ngrams 0' '--top-ngrams 1 --ngram 0' \
    '--similarity 0.5' '--near-duplicates --similarity 0' '--near-duplicates --similarity x' \
    '--contamination' '--contamination missing' '--contamination bad.jsonl' \
    '--contamination-ngram 3' '--contamination blank' '--workers 0' '--vocab-size 0' '--duplicate' '--force' '--merge-file x'; do
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
cp b_text_document.bin d.bin
cp b_text_document.idx d.idx
inspect_dataset stats d --contamination in.jsonl || echo $?
