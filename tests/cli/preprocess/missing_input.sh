# SPDX-License-Identifier: Apache-2.0
preprocess_data --input nowhere.jsonl --output-prefix out
