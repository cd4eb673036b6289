#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A library must not print. This test lists each line of an installed header that could print, and
# fails if there is one.
#
# usage: tests/docs/headers_are_silent.sh
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

folders=(formats/include dataset/include loader/include loader/cuda/include
  preprocess/tokenizer/include)
# printf and related functions, except those like snprintf that write to memory.
streams='std::(cout|cerr|clog)|<(iostream|print)>'
calls='\b(v?printf|v?fprintf|v?dprintf|f?puts|putc|putchar|perror|(fmt|std)::v?print(ln)?)\b *\('

[[ -f ${folders[0]}/millrace/error.hpp ]] || {
  echo "headers_are_silent.sh: there are no headers in $PWD" >&2
  exit 1
}
# grep exits with 1 if it finds nothing, and with 2 if it fails.
status=0
found=$(grep -rnE --include='*.hpp' -- "$streams|$calls|\b(stdout|stderr)\b" "${folders[@]}") ||
  status=$?
((status <= 1)) || exit "$status"
# Examples in comments may print.
if grep -vE '^[^:]+:[0-9]+: *//' <<<"$found" | grep .; then
  echo 'headers_are_silent.sh: the lines above print, or include what does' >&2
  exit 1
fi
