#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the messages of the configure step about a PCRE2 that is too old, missing or new enough.
#
# usage: tests/install/old_pcre2.sh CMAKE
set -euo pipefail

if (($# != 1)) || [[ $1 == -* ]]; then
  sed -n '/^# usage:/s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
cmake=$1
here=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")")
script=$here/../../preprocess/tokenizer/find_pcre2.cmake
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
touch "$scratch/libpcre2-8.so"

# expect STATUS PATTERN VERSION SETTING: configures with VERSION and SETTING. Fails unless the exit
# status is STATUS and the message matches PATTERN.
expect() {
  local status=0
  printf '#define PCRE2_MAJOR           %s\n#define PCRE2_MINOR           %s\n' \
    "${3%.*}" "${3#*.}" >"$scratch/pcre2.h"
  "$cmake" -DMILLRACE_WITH_PCRE2="$4" -DPCRE2_INCLUDE_DIR="$scratch" \
    -DPCRE2_LIBRARY="$scratch/libpcre2-8.so" -P "$script" >"$scratch/log" 2>&1 || status=$?
  echo "$(tr -s ' \n' '  ' <"$scratch/log")" >"$scratch/said"
  [[ $status == "$1" ]] && grep -Eq -- "$2" "$scratch/said" || {
    echo "old_pcre2.sh: PCRE2 $3, $4: status $status, expected $1 and '$2', found:" >&2
    cat "$scratch/log" >&2
    exit 1
  }
}

expect 0 'without PCRE2, as .* is of PCRE2 "10.41", expected 10.42 or later; so a ' 10.41 AUTO
expect 0 'without PCRE2, as .* is of PCRE2 "9.99", expected' 9.99 AUTO
expect 1 'MILLRACE_WITH_PCRE2 is ON, but .* is of PCRE2 "10.9", expected 10.42 or later' 10.9 ON
expect 0 'as it is switched off' 10.42 OFF
expect 0 '^$' 10.42 ON
expect 0 '^$' 11.0 AUTO
