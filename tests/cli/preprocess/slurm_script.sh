# SPDX-License-Identifier: Apache-2.0
# Runs the example for Slurm without Slurm, with three array elements. One of them is preempted and
# resumed.
script=$CASE_DIR/../../../scripts/slurm/preprocess.sbatch
bash -n "$script"
for i in $(seq 20000); do echo "{\"text\": \"$i\"}"; done > in.jsonl
mkdir bin
printf '#!/bin/sh\necho "scontrol $*"\n' > bin/scontrol
chmod +x bin/scontrol
export PATH=$PWD/bin:$PATH INPUT=in.jsonl PARTS=parts OUTPUT=out/web \
  FLAGS='--append-eod --tokenizer-type ByteLevelTokenizer'
export SLURM_ARRAY_JOB_ID=77 SLURM_ARRAY_TASK_COUNT=3 SLURM_CPUS_PER_TASK=2
element() { SLURM_ARRAY_TASK_ID=$1 exec bash "$script"; }

(element 0) 2> log
(element 2) 2> log
# Each block is one line with a checkpoint, so element 1 takes long. It stops on SIGUSR1.
(
  export MILLRACE_TEST_BLOCK_BYTES=1 MILLRACE_TEST_CHECKPOINT_MS=0
  element 1
) 2> log &
pid=$!
until [[ -s parts/web_00001-of-00003.journal ]]; do sleep 0.01; done
sleep 0.3
kill -USR1 $pid
wait $pid
grep -c 'stopped, with' log
test ! -e parts/web_00001-of-00003_text_document.idx
(element 1) 2> log
(element 1) 2> log  # runs again, with nothing left to do

bash "$script" merge 2> log
preprocess_bytes --input in.jsonl --output-prefix whole --append-eod 2> log
for suffix in bin idx meta sum src; do
  cmp out/web_text_document.$suffix whole_text_document.$suffix
done
# If the program fails, the element fails and is not requeued.
INPUT=nowhere.jsonl bash -c 'SLURM_ARRAY_TASK_ID=0 exec bash "$0"' "$script" 2> log || echo "= $?"
