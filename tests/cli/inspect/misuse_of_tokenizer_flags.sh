# SPDX-License-Identifier: Apache-2.0
# Invalid tokenizer flags are also usage errors. They are reported before the dataset is opened.
for flags in NoSuchTokenizer GPT2BPETokenizer 'ByteLevelTokenizer --merge-file a'; do
  # shellcheck disable=SC2086  # the words of a command line
  inspect_dataset show a --doc 0 --tokenizer-type $flags || echo "exit $?"
done
