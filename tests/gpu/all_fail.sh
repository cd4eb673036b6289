#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs tests with a runtime that ignores waits. Each test must fail because it finds a wrong batch.
#
# usage: all_fail.sh GPU_TESTS NAME...
set -u
program=$1
shift
faults=0
for name; do
  if said=$("$program" "$name"); then
    echo "expected a failure of $name, found: $said"
    faults=1
  fi
  case $said in
    *'"verdict": "failed"'*wrong* | *'"verdict": "failed"'*differ*) ;;
    *)
      echo "expected $name to find a wrong batch, found: $said"
      faults=1
      ;;
  esac
done
exit "$faults"
