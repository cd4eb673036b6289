# SPDX-License-Identifier: Apache-2.0
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
inspect_dataset show preprocess_lines --doc 0 --tokenizer-type ByteLevelTokenizer
inspect_dataset show preprocess_lines --doc 12 --tokenizer-type ByteLevelTokenizer --json
inspect_dataset show preprocess_lines --doc 1 --tokenizer-type NullTokenizer --vocab-size 512
