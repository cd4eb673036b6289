# SPDX-License-Identifier: Apache-2.0
# What is wrong with a conversation, or with its flags, and what to do.
cp -r "$CASE_DIR/../../golden/tiny_chat" .
chat=tiny_chat
cat > in.jsonl <<'end'
{"messages": [{"role": "boss", "content": "a"}]}
{"messages": [{"role": "user", "content": "a"}]}
{"conversations": [{"from": "human", "value": "a"}]}
{"messages": [{"role": "user"}]}
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "tools": [{"x": 1}]}
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bbbbbbbbbbbbbbbbbbbbbbbb"}]}
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
end
refused() { preprocess_data --input in.jsonl "$@" && exit 1 || echo "status $?"; }
hf=(--tokenizer-type HuggingFaceTokenizer --tokenizer-model "$chat")
refused "${hf[@]}" --output-prefix out --messages-key messages
preprocess_data --input in.jsonl "${hf[@]}" --output-prefix out --messages-key messages --on-bad-record skip \
  --max-length 20 --overlong drop --json 2> log | grep -o '"overlong.*"not_an' | head -1
inspect_dataset verify out_messages_document
grep in.jsonl: log
grep conversation log
# Templates that are not supported or fail, and one that renders a message in another way if others follow.
tail -1 in.jsonl > last.jsonl
for template in '{% include "x" %}' '{% for m in messages %}' '{{ messages.x.y }}' \
  '{{ raise_exception("no pairs") }}' \
  '{% for m in messages %}{{ m.content }}{% if loop.last %}.{% else %},{% endif %}{% endfor %}'; do
  echo "$template" > t.jinja
  preprocess_data --input last.jsonl "${hf[@]}" --output-prefix other --messages-key messages \
    --chat-template t.jinja && exit 1
done
refused "${hf[@]}" --output-prefix other --messages-key messages --chat-template none.jinja
refused "${hf[@]}" --output-prefix other --messages-key messages --preview 8
refused "${hf[@]}" --output-prefix other --messages-key messages --json-keys text
refused "${hf[@]}" --output-prefix other --messages-key messages --train-on user
refused "${hf[@]}" --output-prefix other --messages-key messages --roles-map human
refused "${hf[@]}" --output-prefix other --messages-key messages --max-length 1
refused "${hf[@]}" --output-prefix other --messages-key messages --overlong drop
refused "${hf[@]}" --output-prefix other --messages-key messages --template-date 2026-02-30
refused "${hf[@]}" --output-prefix other --train-on all
refused "${hf[@]}" --output-prefix other --messages-key messages --sft-tokenizer-prompt-format chatml
refused "${hf[@]}" --output-prefix other --messages-key messages --sft-tokenizer-prompt-format identity --train-on all
refused --tokenizer-type HuggingFaceTokenizer --tokenizer-model "$chat/tokenizer.json" --output-prefix other --messages-key messages
