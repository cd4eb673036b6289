# SPDX-License-Identifier: Apache-2.0
# MILLRACE_ISA chooses the instruction set of the tokenizers, which changes no id.
printf '{"text": "Hello, world"}\n' > in.jsonl
status=0
MILLRACE_ISA=avx1024 preprocess_bytes --input in.jsonl --output-prefix wrong || status=$?
echo "= $status" >&2
preprocess_bytes --input in.jsonl --output-prefix any 2> log
MILLRACE_ISA=portable preprocess_bytes --input in.jsonl --output-prefix portable 2> log
cmp any_text_document.bin portable_text_document.bin
test ! -e wrong_text_document.bin
