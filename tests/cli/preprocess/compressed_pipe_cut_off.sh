# SPDX-License-Identifier: Apache-2.0
printf '{"text": "a"}\n{"text": "b"}\n' | gzip -n | head -c 30 |
  preprocess_bytes --input - --output-prefix out
