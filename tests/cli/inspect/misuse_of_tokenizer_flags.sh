# SPDX-License-Identifier: Apache-2.0
# What the tokenizer says about its flags is misuse, too, and comes before the dataset is opened.
for flags in NoSuchTokenizer GPT2BPETokenizer 'ByteLevelTokenizer --merge-file a'; do
  # shellcheck disable=SC2086  # the words of a command line
  inspect_dataset show a --doc 0 --tokenizer-type $flags || echo "exit $?"
done
