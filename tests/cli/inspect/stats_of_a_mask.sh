# SPDX-License-Identifier: Apache-2.0
# How many tokens of each document are trained.
chat=$CASE_DIR/../../golden/tiny_chat
preprocess_data --input "$chat/conversations.jsonl" --tokenizer-type HuggingFaceTokenizer \
  --tokenizer-model "$chat" --messages-key messages --output-prefix chats 2> log
inspect_dataset stats chats_messages_document | grep -E '^(documents|tokens|trained)'
inspect_dataset stats chats_messages_document --json |
  grep -o '"trained_tokens": [0-9]*\|"document_trained_tokens": {"empty": [0-9]*, "min": [0-9]*, "mean": [0-9.]*, "max": [0-9]*'
