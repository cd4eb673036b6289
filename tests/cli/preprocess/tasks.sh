# SPDX-License-Identifier: Apache-2.0
# Three tasks write into one folder at the same time. Their merged output equals that of one run.
preprocess() { preprocess_bytes --input in.jsonl empty.jsonl --on-bad-record quarantine "$@"; }
for i in $(seq 100); do
  printf '{"text": "%s"}\n' "$i"
  if ((i % 9 == 0)); then printf 'bad %s\r\n\n' "$i"; fi
done > in.jsonl
touch empty.jsonl
mkdir parts
pids=()
for i in 0 1 2; do
  preprocess --output-prefix parts/web --task $i/3 2> log$i &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
preprocess --output-prefix web 2> /dev/null
merge_datasets --input parts --output-prefix merged
for suffix in bin idx meta sum src bad; do cmp merged.$suffix web_text_document.$suffix; done
# In all tasks, the lines of a plain file are counted from its start.
grep -h '(byte ' log? | sort -t: -k2n
# A complete part is left alone. The variables of Slurm select it, too.
before=$(stat -c %i parts/web_00001-of-00003_text_document.bin)
SLURM_PROCID=1 SLURM_NTASKS=3 preprocess --output-prefix parts/web --task slurm --resume 2> /dev/null
test "$before" = "$(stat -c %i parts/web_00001-of-00003_text_document.bin)"
# If the last part is missing, merge_datasets warns. If the second is missing, it refuses.
mkdir some
mv parts/web_00002* some
merge_datasets --input parts --output-prefix first
mv parts/web_00000* some
merge_datasets --input some --output-prefix gap || echo "= $?"
echo '{"text": "a"}' | preprocess_bytes --input - --output-prefix x --task 0/2 || echo "= $?"
preprocess --output-prefix x --task 2/2 || echo "= $?"
preprocess --output-prefix x --task 0/2 --dry-run || echo "= $?"
