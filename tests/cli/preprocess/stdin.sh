# SPDX-License-Identifier: Apache-2.0
# A pipe can be an input, like a file.
printf '{"text": "a"}\n{"text": "b"}\n' | preprocess_bytes --input /dev/stdin --output-prefix out 2> log
od -An -tu2 out_text_document.bin
