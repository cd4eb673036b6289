# SPDX-License-Identifier: Apache-2.0
# Writes an index by hand: one sequence of 300 tokens (0x12c).
eight() { printf '%b' "\x$1\x$2\0\0\0\0\0\0"; }
{
  printf 'MMIDIDX\0\0'
  eight 01 00  # version
  printf '\x08'  # uint16
  eight 01 00  # sequences
  eight 02 00  # entries of the document index
  printf '\x2c\x01\0\0'  # length
  eight 00 00  # pointer
  eight 00 00
  eight 01 00
} > long.idx
head -c 600 /dev/zero > long.bin

inspect_dataset show long --doc 0 | wc -w
inspect_dataset show long --doc 0 --all | wc -w
inspect_dataset show long --doc 0 --tokens 3
inspect_dataset show long --doc 0 --tokens 3 --json
inspect_dataset show long --doc 0 --tokens 0
