# SPDX-License-Identifier: Apache-2.0
# Dropped records are saved next to the dataset, with their place and the reason.
printf '{"text": "a"}\nno JSON\n\n{"text": 1}\n{"title": "\xff"}\n{"text": "b"}\n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --on-bad-record quarantine 2> log
cat out_text_document.bad
grep wrote log
grep -c . out_text_document.bad
preprocess_bytes --input in.jsonl --output-prefix few --on-bad-record quarantine --max-bad-records 2
