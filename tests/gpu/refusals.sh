#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that need a GPU must say why they cannot use one, with an exit status of their own, and
# must never look as if they had passed.
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
# run_all writes results only of what it ran.
if [ -e results ]; then
  echo "there is a folder 'results', although nothing was run"
  faults=1
fi
exit "$faults"
