# SPDX-License-Identifier: Apache-2.0
# 0 same, 1 different, 2 wrong flags, 4 could not finish.
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix a 2> log
for end in bin idx; do cp a_text_document.$end b.$end; done
echo '{"text": "b"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix c 2> log
echo '{}' > state.json
run='a_text_document --order stored --seq-length 1'
for words in 'a_text_document b' 'a_text_document c_text_document' '' 'b' 'b b b' 'b in.jsonl' \
    'b --workers 0' 'b b --list=-1' 'b missing' 'a b' 'state.json in.jsonl' 'state.json state.json' \
    "$run" "$run --" "$run -- --sed 1" "$run -- --seed 1" "$run -- --seq-length 0" \
    "$run -- --help" "$run -- --consumed-samples 9" "-- --ranks 2"; do
  code=0
  eval "inspect_dataset diff $words" > out 2> err || code=$?
  echo "$words: $code: $(grep -v assumed err | head -n 1)"
done
truncate -s -1 b.bin
inspect_dataset diff a_text_document b --json || echo $?
inspect_dataset diff a_text_document c_text_document > /dev/full || echo $?
