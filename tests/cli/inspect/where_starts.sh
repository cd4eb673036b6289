# SPDX-License-Identifier: Apache-2.0
# `where` must agree with the loader in these cases: the last samples, a start in the middle, a
# dataset that occurs twice, full validation in larger steps, and the last epoch of Megatron.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
where() { inspect_dataset where "$@" || echo "exit $?"; }
first() { where "$@" | head -1; }
ranks=(--ranks 2 --micro-batch-size 2)
run=(preprocess_lines --order instant --seq-length 10 --train-samples 22 "${ranks[@]}")
# Samples 20 and 21 do not fill a micro-batch of both ranks.
first "${run[@]}" --step 5 --rank 0 --slot 1
first "${run[@]}" --step 5 --rank 0 --slot 1 --no-drop-last
first "${run[@]}" --step 5 --rank 1 --slot 0 --no-drop-last
for document in 3 12; do
  where "${run[@]}" --document $document
  where "${run[@]}" --document $document --no-drop-last
done
# Micro-batches are counted from the start of the run.
first "${run[@]}" --consumed-samples 5 --step 1 --rank 0 --slot 0
first "${run[@]}" --consumed-samples 5 --step 2 --rank 1 --slot 1
first "${run[@]}" --consumed-samples 5 --step 0 --rank 0 --slot 0
first "${run[@]}" --consumed-samples 5 --global-batch-size 8 --step 1
where "${run[@]}" --consumed-samples 5 --document 12
inspect_dataset audit "${run[@]}" --consumed-samples 5 | head -1
# Rank 0 has one more micro-batch than rank 1 in each pass. So rank 0 is ahead, except after a start
# in a later pass.
cyclic=(preprocess_lines --order instant --seq-length 40 --train-samples 5 --ranks 2
  --dataloader-type cyclic --no-data-sharding)
first "${cyclic[@]}" --step 4 --rank 0
first "${cyclic[@]}" --step 4 --rank 0 --consumed-samples 4
# The dataset occurs twice in the blend. `where` lists both.
where --data-path 1 preprocess_lines 1 preprocess_lines --order megatron --seq-length 40 \
    --train-samples 10 --document 12
# Each step has two micro-batches; each row is a micro-batch.
all=(preprocess_lines --order instant --seq-length 40 --full-validation --ranks 2)
first "${all[@]}" --global-batch-size 4 --step 1 --rank 1 --slot 0
# The same applies if the micro-batches of training have more rows.
first "${all[@]}" --global-batch-size 4 --micro-batch-size 2 --step 1 --rank 1 --slot 0
# One epoch has 6 samples. The loader serves all of them, but the slots of a document are listed
# only for the requested 5 samples.
megatron=(preprocess_lines --order megatron --seq-length 40 --train-samples 5)
first "${megatron[@]}" --step 5
for document in 0 5 9 13 16; do first "${megatron[@]}" --document $document; done
first "${megatron[@]}" --step 6
first "${cyclic[@]}" --no-drop-last --step 0
