# SPDX-License-Identifier: Apache-2.0
# Compares states, and the runs that they belong to.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
state() {  # FILE SED: writes a state
  sed "${2-}" > $1 << 'STATE'
{"millrace_state": 1, "order": "megatron", "seed": 1234, "seq_len": 10, "global_batch": 4,
 "split": "1", "samples": [40, 0, 0], "consumed_samples": 8,
 "data": [{"prefix": "preprocess_lines", "weight": 1.0, "tokens": 3, "sequences": 2,
           "documents": 1, "bin_bytes": 6, "idx_bytes": 70, "root": ""}], "edits": []}
STATE
}
differs() {
  echo "-- $1"
  state b.json "$1"
  inspect_dataset diff a.json b.json "${@:2}" || echo "exit $?"
}
state a.json
differs ''
differs 's/"consumed_samples": 8/"consumed_samples": 16/'
differs 's/"seed": 1234/"seed": 7/' --list 2
differs 's/"edits": \[/&{"skip_samples": [20, 22], "since": 8, "why": "spike"}/'
differs 's/"tokens": 3/"tokens": 4/; s/"seed": 1234/"seed": 7/' --json
differs 's/"preprocess_lines"/"moved"/'
differs 's/"data".*/"data": [], "edits": []}/; /^ *"documents"/d'
