# SPDX-License-Identifier: Apache-2.0
echo '{"text": "literal"}' > 'data[1].jsonl'
echo '{"text": "other"}' > data1.jsonl
preprocess_bytes --input 'data[1].jsonl' --output-prefix out 2> log
od -An -c out_text_document.bin
