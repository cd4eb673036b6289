# SPDX-License-Identifier: Apache-2.0
# A missing file is not a wrong flag, so the exit code is 1.
cp "$CASE_DIR"/../../golden/megatron/idx_int32.{bin,idx} .
inspect_dataset show idx_int32 --doc 0 --tokenizer-type GPT2BPETokenizer \
  --vocab-file vocab.json --merge-file merges.txt
