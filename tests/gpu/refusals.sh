#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs programs that need a GPU where they cannot use one. They must say why, exit with a special
# status, and never look as if they had passed.
#
# usage: refusals.sh STATUS TEXT PROGRAM...
#
# Each program must exit with STATUS, print nothing to standard output, and say TEXT.
set -u
status=$1
text=$2
shift 2
[ $# -gt 0 ] || exit 2
folder=$(mktemp -d) || exit 1
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder" || exit 1
faults=0
for program; do
  "$program" >out 2>err
  found=$?
  if [ "$found" -ne "$status" ] || [ -s out ] || ! grep -q -F -- "$text" err; then
    echo "$program: expected exit status $status, no output and '$text', found $found and:"
    cat out err
    faults=1
  fi
done
# run_all must write no results if it ran nothing.
if [ -e results ]; then
  echo "there is a folder 'results', although nothing was run"
  faults=1
fi
exit "$faults"
