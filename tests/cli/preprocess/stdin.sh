# SPDX-License-Identifier: Apache-2.0
# A pipe is an input like any other.
printf '{"text": "a"}\n{"text": "b"}\n' | preprocess_bytes --input /dev/stdin --output-prefix out 2> log
od -An -tu2 out_text_document.bin
