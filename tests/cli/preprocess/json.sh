# SPDX-License-Identifier: Apache-2.0
# The output is one line of JSON, with nothing else on stdout. Values that differ between runs are
# left out here.
printf '{"text": ["ab", "c"], "title": ""}\n\n{"text": "\\ud800", "title": "d"}\n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --json-keys text title --append-eod --workers 1 \
  --json 2> log > summary
wc -l < summary
sed -E 's/("(seconds|cpu_seconds|peak_rss_bytes|read|read_spans|encode|write|sync)"): [-+.e0-9]+/\1: N/g
  s/("slowest_stage"): [^,]+/\1: S/' summary
