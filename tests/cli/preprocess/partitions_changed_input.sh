# SPDX-License-Identifier: Apache-2.0
# A run that was killed while it joined its partitions reads nothing more, whatever the inputs have now.
make() { # make SIZE: records of 10 tokens, one of SIZE tokens, and small ones
  seq -f '{"text": "%010.0f"}' 2000 > in.jsonl
  printf '{"text": "%*s"}\n' "$1" '' >> in.jsonl
  seq -f '{"text": "tail %.0f"}' 50 >> in.jsonl
}
run() { preprocess_bytes --input in.jsonl --output-prefix "$@" --partitions 4; }
killed_in_join() { # killed_in_join RECORD FLAGS...: kills a run at its RECORD-th journal record
  rm -f r_* r.journal
  MILLRACE_TEST_BLOCK_BYTES=1000 MILLRACE_TEST_CHECKPOINT_MS=0 MILLRACE_TEST_KILL_AT=journal:$1 \
    run r "${@:2}" 2> log && exit 1
  grep -q 'joining 4 partitions' log
}
make 5000
run whole --max-tokens 20100 2> log
for record in 120 160 200; do
  make 5000
  killed_in_join $record --max-tokens 20100
  make 5
  run r --max-tokens 20100 --resume 2> log
  grep left log
  for suffix in bin idx src sum meta; do cmp "whole_text_document.$suffix" "r_text_document.$suffix"; done
done
# All was read, so an input that has grown since is not the one that was read.
make 5000
killed_in_join 140
echo '{"text": "more"}' >> in.jsonl
run r --resume 2>&1 | grep -v '^--resume' || true
