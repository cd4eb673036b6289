# SPDX-License-Identifier: Apache-2.0
# `where` prints all slots of a rank or of all ranks, names its assumptions, and accepts Megatron's
# iterations.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
run=(preprocess_lines --order megatron --seq-length 20 --ranks 2 --micro-batch-size 2
  --global-batch-size 8 --seed 1234)
where() { inspect_dataset where "${run[@]}" "$@"; }
where --step 0 --rank 1
where --step 0 2> log | grep '^step'
where --step 0 --slot 2 2> log | grep '^step'
# The output for one slot is a JSON object. The same object is one of the list "slots".
where --step 0 --rank 1 --slot 3 --json 2> log > one
where --step 0 --json 2> log > all
grep -o '"rank": [01], "slot": [0-9]' all
grep -cF -- "$(cat one)" all
head -c 11 all; echo
# Iterations count from 1. `--train-iters N` requests the samples of N steps.
where --train-samples 24 --step 2 > by_step
where --train-samples 24 --iteration 3 | cmp - by_step
where --train-iters 3 --iteration 3 | cmp - by_step
where --train-iters 5 --part valid --valid-samples 8 --step 0 | grep -c '^step 0'
# The last step may be incomplete.
where --step 1 | grep '^step'
where --train-samples 20 --step 2 --no-drop-last | grep '^step'
where --train-samples 24 --consumed-samples 4 --step 0 | grep '^step'
# `where` prints its assumptions.
inspect_dataset where preprocess_lines --order instant --seq-length 20 --step 0 | grep '^step'
inspect_dataset where preprocess_lines --order instant --seq-length 20 --document 12 | grep '^step'
inspect_dataset where preprocess_lines --order stored --seq-length 20 --iteration 1 | grep '^step'
inspect_dataset where preprocess_lines --order megatron --split 1,1 --part valid --seq-length 20 \
    --step 0 --ranks 2 | grep '^step'
fails() { where "$@" > /dev/null 2> log || grep -v assumed log | head -n 1; }
fails --iteration 0
fails --iteration 1 --step 0
fails --train-iters 0 --step 0
fails --train-iters 3 --train-samples 24 --step 0
fails --train-iters 3 --rampup-batch-size 4 4 8 --step 0
fails --train-iters 2305843009213693952 --step 0
fails --step 0 --rank 2
fails --step 0 --slot 4
fails --step 9 --rank 9223372036854775807
fails --step -1
fails --step 9
fails --rank 1
