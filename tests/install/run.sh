#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs a finished build into a scratch folder and has a foreign project use it: find_package,
# every installed header in two sources, links, and reads a dataset through the loader.
#
# usage: tests/install/run.sh BUILD_DIR
set -euo pipefail

if (($# != 1)) || [[ $1 == -* ]]; then
  sed -n '/^# usage:/s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
here=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")")
build=$(realpath -- "$1")
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

# cached NAME: what the build was configured with.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

cmake --install "$build" --prefix "$scratch/installed" >"$scratch/log" || {
  cat "$scratch/log"
  exit 1
}

# Built like the library itself, so that a sanitizer or coverage build links.
cmake -S "$here/consumer" -B "$scratch/build" -G "$(cached CMAKE_GENERATOR)" \
  -DCMAKE_PREFIX_PATH="$scratch/installed" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" -DCMAKE_CXX_FLAGS="$(cached CMAKE_CXX_FLAGS)"
cmake --build "$scratch/build"

# Tokens of the byte-level tokenizer: the bytes of the text, then its end.
printf '{"text": "%s"}\n' 'To be, or not to be' 'that is the question' >"$scratch/in.jsonl"
"$scratch/installed/bin/preprocess_data" --input "$scratch/in.jsonl" \
  --output-prefix "$scratch/data" --append-eod 2>"$scratch/log" || {
  cat "$scratch/log"
  exit 1
}
"$scratch/build/consumer" "$scratch/data_text_document" | tee "$scratch/printed"
# "To be, o": eight tokens, as the program asks for.
grep -qx 'first window: 84 111 32 98 101 44 32 111' "$scratch/printed" || {
  echo 'run.sh: that is not the first window of the text' >&2
  exit 1
}
