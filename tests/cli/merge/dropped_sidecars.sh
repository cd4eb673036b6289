# SPDX-License-Identifier: Apache-2.0
# If a sidecar is dropped because a part lacks it, the message names the sidecar and the part.
preprocess() { preprocess_bytes "$@" 2> log; }
printf '{"text": "a"}\nno JSON\n' > 1.jsonl
printf '{"text": "b"}\nno JSON\n' > 2.jsonl
mkdir parts
preprocess --input 1.jsonl --output-prefix parts/1 --on-bad-record quarantine
preprocess --input 2.jsonl --output-prefix parts/2 --on-bad-record skip --no-checksums
merge() { merge_datasets --input parts --output-prefix merged --overwrite "$@" && ls merged.*; }
merge --json
preprocess --input 2.jsonl --output-prefix parts/2 --on-bad-record quarantine --overwrite
rm parts/2_text_document.{src,bad}
merge
preprocess --input 2.jsonl --output-prefix parts/2 --on-bad-record quarantine --overwrite
rm parts/1_text_document.meta
merge
# Sidecars that no part has are not reported.
rm parts/*.{meta,sum,src,bad}
merge
