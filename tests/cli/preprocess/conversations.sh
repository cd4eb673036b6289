# SPDX-License-Identifier: Apache-2.0
# Ids and masks are those of transformers (tests/golden/tiny_chat); a kill and a resume change nothing.
cp -r "$CASE_DIR/../../golden/tiny_chat" .
chat=tiny_chat
chats() {
  preprocess_data --input "$chat/conversations.jsonl" --tokenizer-type HuggingFaceTokenizer \
    --tokenizer-model "$chat" --messages-key messages "$@"
}
chats --output-prefix out 2> log
grep 'to be predicted' log
cmp out_messages_document.bin "$chat/conversations.bin"
cmp out_messages_document.mask "$chat/conversations.mask"
inspect_dataset verify out_messages_document
chats --output-prefix out --resume 2>&1 | head -1
chats --preview 4
chats --output-prefix all --train-on all --max-length 60 --overlong truncate --append-eod --json 2> log | grep -o '"trained_tokens": [0-9]*\|"truncated": [0-9]*'
