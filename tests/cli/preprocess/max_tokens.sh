# SPDX-License-Identifier: Apache-2.0
# --max-tokens ends a run before the first document that does not fit, and says where.
for i in 1 2 3 4; do echo "{\"text\": \"abc\", \"title\": \"t\"}"; done > a.jsonl
{ echo; echo '{"text": "defg", "title": ""}'; echo '{"text": "h", "title": "u"}'; } > b.jsonl
run() { preprocess_data --input a.jsonl b.jsonl --tokenizer-type ByteLevelTokenizer "$@" 2>&1; }
run --output-prefix out --max-tokens 15 | grep -E 'documents|max-tokens|blank'
inspect_dataset verify out_text_document
grep -o '"options": {[^}]*}' out_text_document.meta
run --output-prefix both --json-keys text title --max-tokens 4 --json | grep -o '"documents": [0-9]*, "tokens": [0-9]*\|"stopped_before": "[^"]*"'
run --output-prefix exact --max-tokens 12 | grep -E 'documents|max-tokens|blank'
run --output-prefix large --max-tokens 1000 | grep -E 'documents|max-tokens'
run --output-prefix none --max-tokens 1 | grep -E 'documents|max-tokens|nothing'
run --output-prefix dealt --max-tokens 15 --partitions 2 | grep -E 'documents|max-tokens'
# What comes after the end may change.
run --output-prefix out --max-tokens 15 --resume | head -1
echo 'no JSON' >> b.jsonl
run --output-prefix out --max-tokens 15 --resume | tail -4 | head -1
run --output-prefix out --max-tokens 16 --resume || echo "status $?"
sed -i 's/^{"text": "abc"/{"text": "xyz"/' a.jsonl
{ run --output-prefix out --max-tokens 15 --resume || true; } | grep -o 'a.jsonl has changed'
# The run does not wait for the end of a pipe.
{ yes '{"text": "abc"}' || true; } 2> /dev/null | preprocess_data --input - --output-prefix pipe --max-tokens 100000 \
  --tokenizer-type ByteLevelTokenizer 2>&1 | grep -E 'documents|max-tokens'
seq -f '{"text": "abc %.0f"}' 20000 > c.jsonl
preprocess_data --input c.jsonl --output-prefix dry --max-tokens 40000 --dry-run --tokenizer-type ByteLevelTokenizer |
  grep -E '^documents|^tokens|ends at'
for flags in '--max-tokens 0' '--max-tokens -5' '--max-tokens many'; do
  run --output-prefix bad $flags | head -1 || true
done
