# SPDX-License-Identifier: Apache-2.0
# Lines and bytes of the second file count from its own start, after decompression.
echo '{"text": "a"}' > 1.jsonl
printf '{"text": "a"}\r{"text": "b"}\r{}' | gzip > 2.jsonl.gz
preprocess_bytes --input 1.jsonl 2.jsonl.gz --output-prefix out
