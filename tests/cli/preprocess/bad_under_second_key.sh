# SPDX-License-Identifier: Apache-2.0
printf '{"a": "x", "b": "y"}\n{"a": "x"}\n' > in.jsonl
status=0
preprocess_bytes --input in.jsonl --output-prefix out --json-keys a b || status=$?
test "$(echo *)" = in.jsonl
exit "$status"
