# SPDX-License-Identifier: Apache-2.0
# A killed run resumes where it stopped, and writes the same output as a run that was never killed.
for i in $(seq 1000); do echo "{\"text\": \"document $i\"}"; done > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix whole 2> log
export MILLRACE_TEST_BLOCK_BYTES=5000 MILLRACE_TEST_CHECKPOINT_MS=0
(MILLRACE_TEST_KILL_AT=40 preprocess_bytes --input in.jsonl --output-prefix out || echo "killed: $?") 2> log
ls out.journal
preprocess_bytes --input in.jsonl --output-prefix out 2>&1 || echo "refused: $?"
preprocess_bytes --input in.jsonl --output-prefix out --resume --append-eod 2>&1 || echo "refused: $?"
preprocess_bytes --input in.jsonl --output-prefix out --resume 2> log
for suffix in bin idx meta src sum; do cmp {whole,out}_text_document.$suffix; done
preprocess_bytes --input in.jsonl --output-prefix out --resume 2>&1 | grep -o 'wrote.*'
echo '{"text": "more"}' >> in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --resume 2>&1 || echo "refused: $?"
ls
