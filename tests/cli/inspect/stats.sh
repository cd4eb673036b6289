# SPDX-License-Identifier: Apache-2.0
# Counts ids, lengths, inputs, duplicates and n-grams of one dataset and of several.
mkdir data
cat > a.jsonl << 'LINES'
{"text": "a red fox"}
{"text": "Red foxes: naïve foxes"}
{"text": ""}
{"text": "a red fox"}
LINES
echo '{"text": "a red fox"}' > b.jsonl
golden=$CASE_DIR/../../golden/tiny_bpe
bpe=(--tokenizer-type GPT2BPETokenizer --vocab-file "$golden/vocab.json"
    --merge-file "$golden/merges.txt")
preprocess_bytes --input a.jsonl b.jsonl --output-prefix data/a --append-eod 2> log
preprocess_bytes --input b.jsonl --output-prefix data/b 2> log
preprocess_data --input a.jsonl --output-prefix c "${bpe[@]}" --append-eod 2> log
a=data/a_text_document
inspect_dataset stats $a --duplicates --top-ngrams 2 --ngram 4
inspect_dataset stats data --top 2 --duplicates --groups 1
inspect_dataset stats c_text_document "${bpe[@]}" --top 3 --top-ngrams 1 --ngram 2 --json
inspect_dataset stats c_text_document --top 0 --vocab-size 300
inspect_dataset stats $a --vocab-size 120 --json --top 0
cat > test.jsonl << 'LINES'
{"text": "Red foxes: many"}
{"text": "no"}
LINES
printf 'nothing here\n\nRed foxes\r\n' > test.txt
inspect_dataset stats data --top 0 --near-duplicates --contamination test.jsonl test.txt \
    data/b_text_document --contamination-ngram 9 --groups 2 | sed -n '/near duplicates/,$p'
inspect_dataset stats $a --top 0 --near-duplicates --similarity 0.9 --contamination test.jsonl --json |
    sed 's/.*"inputs"/"inputs"/; s/"chance": 0.99[0-9]*/"chance": 0.99.../'
inspect_dataset stats $a --frequencies ids.tsv --top 0 > log
sed -n '1,3p;99,103p;$p' ids.tsv
# The same for any number of threads.
for workers in 1 2 7; do
  inspect_dataset stats data --duplicates --top-ngrams 9 --ngram 3 --near-duplicates \
      --contamination test.txt --contamination-ngram 3 --workers $workers --json
done | sort | uniq -c | sed 's/^ *//' | cut -c 1-60
