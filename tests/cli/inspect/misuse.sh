# SPDX-License-Identifier: Apache-2.0
# Each line is an invalid command line. The program prints an error message, then the usage.
while read -r line; do
  # shellcheck disable=SC2086  # the words of a command line
  inspect_dataset $line 2> err || echo "$?: $(head -n 1 err)"
  [[ $(sed -n 2p err) == 'usage: inspect_dataset '* ]] || echo "no usage: inspect_dataset $line"
done << 'LINES'

look a
--json
info
verify
info a --vocab-size 3
info a --js
verify a --vocab-size many
verify a --vocab-size 0
show a
show a --doc -1
show a --doc=-1
show a --doc 99999999999999999999
show a --doc 0 --tokens 3 --all
show a --doc 0 --tokens=-3
show a --doc 0 --vocab-file vocab.json
show a --doc 0 --vocab-size 512
show a --doc 0 --vocab-file --merge-file merges.txt
show a --doc 0 --tokenizer-type --json
LINES
