# SPDX-License-Identifier: Apache-2.0
preprocess_bytes --input 'data/*.jsonl' --output-prefix out
