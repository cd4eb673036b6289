# SPDX-License-Identifier: Apache-2.0
# Finds texts, ids and regular expressions, in one dataset and in several, with their lines and the
# slots that served them.
mkdir -p data/more
cat > in.jsonl << 'LINES'
{"text": "a red fox"}
{"text": "Red foxes: naïve foxes"}
{"text": "none here"}
LINES
golden=$CASE_DIR/../../golden/tiny_bpe
bpe=(--tokenizer-type GPT2BPETokenizer --vocab-file "$golden/vocab.json"
    --merge-file "$golden/merges.txt")
preprocess_bytes --input in.jsonl --output-prefix data/a --append-eod 2> log
preprocess_data --input in.jsonl --output-prefix data/more/b "${bpe[@]}" --append-eod 2> log
a=data/a_text_document
inspect_dataset search $a --text fox --text 'd f'
inspect_dataset search $a --text 'ïve f' --context 5 --json
inspect_dataset search data/more "${bpe[@]}" --text ' fox' --hits 1
inspect_dataset search $a --ids '102 111,120' --ids 1 --hits 2
inspect_dataset search data 'data/a*' --ids 102 --hits 0
inspect_dataset search 0.3 $a 0.7 data/more/b_text_document --ids 102 --hits 0
printf 'fox\r\n\nnone\n' > texts
printf '102 111\n\n32, 102\n' > ids
inspect_dataset search $a --texts-from texts --hits 0
inspect_dataset search $a --ids-from ids --hits 0 --json
inspect_dataset search --data-path $a --text foxes --order stored --seq-length 8 --ranks 2 --hits 1
inspect_dataset search $a --text foxes --order instant --seq-length 8 --train-samples 14 --hits 1 --json
# The same for any number of threads.
for workers in 1 2 7; do
  inspect_dataset search $a --text fox --workers $workers --json
done | sort | uniq -c | sed 's/^ *//' | cut -c 1-60
