# SPDX-License-Identifier: Apache-2.0
preprocess_bytes --input nowhere.jsonl --output-prefix out
