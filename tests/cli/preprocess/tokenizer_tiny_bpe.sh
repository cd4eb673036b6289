# SPDX-License-Identifier: Apache-2.0
# The flags reach the tokenizer: the output has its ids and its end-of-document id.
golden=$CASE_DIR/../../golden/tiny_bpe
printf '{"text": ""}\n{"text": "<|endoftext|>"}\n' > in.jsonl
preprocess_data --input in.jsonl --output-prefix out --append-eod --tokenizer-type GPT2BPETokenizer \
  --vocab-file "$golden/vocab.json" --merge-file "$golden/merges.txt" 2> log
od -An -tu2 out_text_document.bin
