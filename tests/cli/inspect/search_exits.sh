# SPDX-License-Identifier: Apache-2.0
# 0 found, 1 not found, 2 wrong flags, 4 could not finish.
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix a 2> log
for flags in '--text a' '--text b' '--ids 97' '--ids 1000000' '' '--text a --ids 1' '--text=' \
    '--ids one' "--ids ''" '--regex a --regex b' '--text a --hits=-1' '--text a --workers 0' \
    '--texts-from missing' '--texts-from in.jsonl --tokenizer-type NullTokenizer --vocab-size 512' \
    '--text a --order stored' '--text a --seq-lenght 4' \
    '--text=--a' '--text --a'; do
  code=0
  eval "inspect_dataset search a_text_document $flags" > out 2> err || code=$?
  echo "$flags: $code: $(head -n 1 err)"
done
mkdir empty
for prefix in a missing empty 'b*' 'empty/*' ''; do
  code=0
  inspect_dataset search "$prefix" --text a > out 2> err || code=$?
  echo "$prefix: $code: $(head -n 1 err)"
done
cp a_text_document.bin c.bin
cp a_text_document.idx c.idx
inspect_dataset search c --text a || echo $?
inspect_dataset search c --ids 97 --hits 0
truncate -s -1 c.bin
inspect_dataset search c --ids 97 --json || echo $?
printf '\n\n' > blank
inspect_dataset search a_text_document --texts-from blank || echo $?
inspect_dataset search a_text_document --text a > /dev/full || echo $?
