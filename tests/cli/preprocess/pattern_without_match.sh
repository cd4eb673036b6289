# SPDX-License-Identifier: Apache-2.0
preprocess_data --input 'data/*.jsonl' --output-prefix out
