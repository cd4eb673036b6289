# SPDX-License-Identifier: Apache-2.0
# Bad input and flags get a sentence, an exit code, and leave no file.
tell() { inspect_dataset convert "$@" || echo "exit $?"; }
tell
tell x
tell nowhere --output-prefix y
printf '%s\n' '{"text": "one"}' '{"text": "two words"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix web --append-eod 2> /dev/null
rm web_text_document.src web_text_document.meta
inspect_dataset convert web_text_document --to nanogpt --output-prefix raw --lossy
tell web_text_documen --output-prefix y
tell web_text_document --to parquet --output-prefix y
tell web_text_document --to nanogpt --output-prefix y
tell web_text_document --to nanogpt --eod-id 111 --output-prefix y
tell web_text_document --to nanogpt --lossy --output-prefix web_text_document
tell web_text_document --to nanogpt --lossy --output-prefix no/folder/y
tell web_text_document.bin --dtype uint16 --to nanogpt --output-prefix y
tell web_text_document --to nanogpt --output-dtype uint32 --lossy --output-prefix y
tell web_text_document --to nanoset --shard-tokens 5 --lossy --output-prefix y
tell web_text_document web_text_document --to nanoset --output-prefix y
tell raw.bin --output-prefix y
tell raw.bin --from nanogpt --output-prefix y
tell raw.bin --from nanogpt --dtype float32 --output-prefix y
tell raw.bin --from nanogpt --dtype uint16 --output-prefix y
tell raw.bin --from nanogpt --dtype uint16 --eod-id 0 --bod-id 0 --output-prefix y
tell web_text_document --to nanogpt --eod-id 111 --lossy --output-prefix other
tell raw.bin --from llm.c --eod-id 0 --output-prefix y
tell raw.bin --from nanogpt --dtype uint16 --eod-id 0 --output-prefix web_text_document
echo '5' > ends
tell raw.bin --from nanogpt --dtype uint16 --boundaries ends --output-prefix y --json
tell raw.bin --from nanogpt --dtype uint16 --boundaries none --output-prefix y
tell 'no*.ds' --output-prefix y
ls
