# SPDX-License-Identifier: Apache-2.0
# Refuses wrong runs: two tokenizers, samples that are too long, a weight with a comma, and a
# missing number of samples.
printf '{"text": "%s"}\n' 'one two three' 'four five six' 'seven' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix a 2> log
printf '{"text": "1 2 3 4 5 6 7 8 9"}\n{"text": "3 4 5 6 7 8 9"}\n' > ids.jsonl
preprocess_data --input ids.jsonl --output-prefix b --tokenizer-type NullTokenizer --vocab-size 100 2> log
fails() { inspect_dataset "$@" 2> log || echo "= $?: $(grep -v assumed log | sed -E 's/[0-9a-f]{64}/F/g')"; }
two=(--data-path 0.5 a_text_document 0.5 b_text_document --seq-length 4 --train-samples 4)
for order in megatron instant; do
  fails where "${two[@]}" --order $order --step 0
  inspect_dataset where "${two[@]}" --order $order --step 0 --allow-several-tokenizers 2> log | grep '^step'
done
# audit and simulate refuse and allow the same datasets.
fails audit "${two[@]}" --order instant
inspect_dataset audit "${two[@]}" --order instant --allow-several-tokenizers | tail -n 1
run=("${two[@]}" --order instant --compute-ms 0 --steps 2 --full-speed-steps 0 --look-ahead 1 --threads 1)
fails simulate "${run[@]}"
inspect_dataset simulate "${run[@]}" --allow-several-tokenizers | grep -o '1 rank as threads, 2 steps'
# A dataset without a .meta is accepted.
mv b_text_document.meta away
fails where "${two[@]}" --order instant --step 0 | grep '^step'
for order in megatron stored instant; do
  fails where a_text_document --order $order --seq-length 4096 --step 0
  fails audit a_text_document --order $order --seq-length 4096
done
fails where --data-path 0,7 a_text_document 0,3 b_text_document --order instant --seq-length 4 --step 0
fails where --data-path 0.7 a_text_document 0.3 b_text_document --order megatron --seq-length 4 --step 0
fails where --data-path 1 a_text_document 1 b_text_document --order megatron --part valid --seq-length 4 --step 0
