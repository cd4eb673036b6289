# SPDX-License-Identifier: Apache-2.0
# If a file does not fit the tokenizer type, the message names its format and the flags for it.
golden=$CASE_DIR/../../golden
echo '{"text": "a"}' > in.jsonl
fails() {
  local status=0
  preprocess_data --input in.jsonl --output-prefix out "$@" 2> log || status=$?
  echo "= $status: $(head -n 1 log)"
}
cp "$golden"/tiny_bpe/{vocab.json,merges.txt} .
cp "$golden"/tiny_ranks/tiny.{tiktoken,vocab.json} .
printf '\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02\n\x0c\n\x03<s>' > some.model
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n' > vocab.txt
mkdir hf sp gpt2 bert none
cat > hf/tokenizer.json <<'END'
{"added_tokens": [{"id": 1, "content": "<|end_of_text|>", "single_word": false, "lstrip": false,
 "rstrip": false, "normalized": false, "special": true}], "pre_tokenizer": {"type": "WhitespaceSplit"},
 "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0}}}
END
cp some.model sp/tokenizer.model
cp vocab.json merges.txt gpt2
cp vocab.txt bert

echo "# models"
fails --tokenizer-type SentencePieceTokenizer --tokenizer-model hf/tokenizer.json
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model some.model
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model tiny.tiktoken
fails --tokenizer-type Llama2Tokenizer --tokenizer-model tiny.tiktoken
fails --tokenizer-type TikTokenizer --tokenizer-model hf/tokenizer.json
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model vocab.json
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model tiny.vocab.json
echo "# JSON lines, other files"
printf '{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}\n' > two.jsonl
echo 'some words' > words.txt
fails --tokenizer-type SentencePieceTokenizer --tokenizer-model in.jsonl
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model two.jsonl
fails --tokenizer-type TikTokenizer --tokenizer-model two.jsonl
fails --tokenizer-type SentencePieceTokenizer --tokenizer-model words.txt
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model words.txt
fails --tokenizer-type TikTokenizer --tokenizer-model words.txt
fails --tokenizer-type TikTokenizer --tokenizer-model some.model
fails --tokenizer-type TikTokenizer --tokenizer-model tiny.tiktoken
fails --tokenizer-type GPT2BPETokenizer --vocab-file two.jsonl --merge-file merges.txt
echo "# folders"
fails --tokenizer-type SentencePieceTokenizer --tokenizer-model sp
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model sp
fails --tokenizer-type SentencePieceTokenizer --tokenizer-model hf
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model gpt2
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model bert
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model none
fails --tokenizer-type GPT2BPETokenizer --vocab-file gpt2 --merge-file merges.txt
echo "# two files"
fails --tokenizer-type GPT2BPETokenizer --vocab-file merges.txt --merge-file vocab.json
fails --tokenizer-type GPT2BPETokenizer --vocab-file hf/tokenizer.json --merge-file merges.txt
fails --tokenizer-type BertWordPieceCase --vocab-file vocab.json
echo "# types"
for type in gpt2bpetokenizer huggingface LLAMA2TOKENIZER sentence-piece-tokenizer tiktoken word2vec; do
  fails --tokenizer-type "$type" --tokenizer-model m
done
echo "# end of document"
eod=(--append-eod --tokenizer-type HuggingFaceTokenizer)
fails "${eod[@]}" --tokenizer-model hf
fails "${eod[@]}" --tokenizer-model hf/tokenizer.json
echo '{"tokenizer_class": "PreTrainedTokenizerFast"}' > hf/tokenizer_config.json
fails "${eod[@]}" --tokenizer-model hf
fails "${eod[@]}" --tokenizer-model hf --eod-token '<|end_of_text|>'
