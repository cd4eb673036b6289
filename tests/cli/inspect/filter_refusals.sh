# SPDX-License-Identifier: Apache-2.0
# Refusals write nothing.
printf '{"text": "a"}\n{"text": "b"}\n{"text": "b"}\n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix in 2> log
a=in_text_document
inspect_dataset search $a --text b --hits 1 --json > some.json 2> log
inspect_dataset search $a --text b --json > hits.json
sed 's/in_text/other/g' hits.json > other.json
for flags in '' '--keep' '--keep --drop --documents 1' '--documents 1' '--keep --duplicates' \
    '--keep --documents 3' "--keep --documents ''" "--keep --documents '1 x'" \
    '--keep --documents 2-1' '--keep --documents=-1' '--drop --documents 0-2' \
    '--keep --documents 1 --duplicates' '--keep --hits-from some.json' \
    '--keep --hits-from other.json' '--keep --hits-from in.jsonl' '--keep --hits-from missing' \
    '--keep --hits-from list.json' '--duplicates --workers 0'; do
  echo '{"places": [{}], "hits": 1}' > list.json
  code=0
  eval "inspect_dataset filter $a --output-prefix out $flags" > out.txt 2> err || code=$?
  echo "$flags: $code: $(head -n 1 err)"
done
for output in $a missing/out out/ ''; do
  code=0
  inspect_dataset filter $a --keep --documents 1 --output-prefix "$output" > out.txt 2> err || code=$?
  echo "$output: $code: $(head -n 1 err)"
done
inspect_dataset filter $a --keep --documents 1 || echo $?
inspect_dataset filter $a --keep --documents 1 --output-prefix out
inspect_dataset filter $a --keep --documents 1 --output-prefix out --json || echo $?
ls
