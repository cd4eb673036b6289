# SPDX-License-Identifier: Apache-2.0
printf '{"text": "a"}\n{"text": "b"}\n' | gzip -n | head -c 30 |
  preprocess_data --input - --output-prefix out
