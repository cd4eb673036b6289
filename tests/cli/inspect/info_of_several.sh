# SPDX-License-Identifier: Apache-2.0
# A folder, a pattern or several prefixes give one table. A damaged dataset does not hide the others.
mkdir -p data/sub
for i in 1 2 3; do
  for ((k = 0; k < 20 * i; ++k)); do printf '{"text": "%05d"}\n' "$k"; done > in.jsonl
  preprocess_bytes --input in.jsonl --output-prefix "data/d$i" 2> log
done
mv data/d3_* data/sub/
inspect_dataset info data
inspect_dataset info 'data/d?_*' --seq-length 10 --split 8,1,1
inspect_dataset info data/d2_text_document data/d1_text_document --seq-length 7
inspect_dataset info data --seq-length 7 --train-samples 40 2> err || echo "$?: $(head -n 1 err)"
echo '= JSON'
inspect_dataset info data --json --seq-length 10 --split 1 | sed 's/"meta": {[^}]*}[^}]*}[^]]*\][^}]*}[^}]*}[^}]*}/META/g'
echo '= damaged'
head -c 50 data/d2_text_document.idx > cut
mv cut data/d2_text_document.idx
inspect_dataset info data || echo "$?"
{ inspect_dataset info data --json || echo "$?" >&2; } | grep -o '"error": [^}]*'
echo '= nothing there'
mkdir empty
inspect_dataset info empty || echo "$?"
inspect_dataset info 'empty/*' || echo "$?"
