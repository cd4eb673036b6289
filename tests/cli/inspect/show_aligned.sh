# SPDX-License-Identifier: Apache-2.0
# One line per token. Parts of characters and invisible characters can be told from other text.
printf '%s\n' '{"text": "a\"\\\\\n\t 日\u00a0\u200b"}' '{"text": ""}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix bytes --append-eod 2> log
data=bytes_text_document
inspect_dataset show $data --doc 0 --as aligned
echo '= a window'
inspect_dataset show $data --doc 0 --as aligned --from 6 --count 2
inspect_dataset show $data --doc 0 --from 7 --context 1 --as aligned
inspect_dataset show $data --doc 0 --from 14 --context 100 --as aligned | tail -n 2
inspect_dataset show $data --doc 0 --from 6 --count 3
inspect_dataset show $data --doc 0 --from 6 --count 3 --as text
inspect_dataset show $data --doc 0 --from 6 --count 3 --as ids
echo '= JSON: half a character is a lone surrogate'
inspect_dataset show $data --doc 0 --from 7 --context 1 --as aligned --json
echo '= no color, and control characters as they are, because stdout is no terminal'
printf '{"text": "\\u001b[31mred"}\n' > red.jsonl
preprocess_bytes --input red.jsonl --output-prefix red 2> log
inspect_dataset show red_text_document --doc 0 --as text | tail -n 1 | od -An -c
echo '= a sequence'
inspect_dataset show $data --sequence 0 --count 2
tiny=$CASE_DIR/../../golden/tiny_bpe
gpt2=(--tokenizer-type GPT2BPETokenizer --vocab-file "$tiny/vocab.json" --merge-file "$tiny/merges.txt")
echo '{"text": "The mare 日本"}' > in.jsonl
preprocess_data --input in.jsonl --output-prefix gpt2 --append-eod "${gpt2[@]}" 2> log
inspect_dataset show gpt2_text_document --doc 0 --as aligned "${gpt2[@]}"
