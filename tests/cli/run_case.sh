#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs commands the way a user types them, and compares what they say.
#
# usage: tests/cli/run_case.sh [--update] CASE.sh...
#
# A case is a shell script, CASE.sh, with up to three files next to it that hold what is expected:
#
#   CASE.out   its stdout, byte for byte                       (no such file: nothing)
#   CASE.err   its stderr, line by line;                       (no such file: nothing)
#              `*` matches any part of a line, a line `...` matches any number of lines
#              (progress lines, "Processed ...", depend on time, so they are ignored)
#   CASE.exit  its exit status                                 (no such file: 0)
#
# The script is run with `bash -euo pipefail` in a new folder that is removed afterwards, with an
# empty stdin, LC_ALL=C, and
#
#   MILLRACE_BIN  the folder of the programs, also first on PATH (default: build/bin)
#   CASE_DIR      the folder of CASE.sh
#   PATH          also finds tests/cli/commands, e.g. preprocess_bytes: preprocess_data with
#                 --tokenizer-type ByteLevelTokenizer
#
# A case that cannot run here prints the reason to stderr and exits with 77. This runner then also
# exits with 77 (ctest: SKIP_RETURN_CODE 77). --update rewrites the expected files from the actual
# results, but keeps a .err that still matches, so that its `*` are not lost.
#
# Example 1, success without output, needs no expected files: keys/one_document.sh
#
#   echo '{"text": "a"}' > in.jsonl
#   preprocess_bytes --input in.jsonl --output-prefix out --append-eod 2> log
#   test -s out_text_document.idx
#
# Example 2, a refusal: inspect/no_such_dataset.sh, .err and .exit
#
#   inspect_dataset info nowhere
#
#   inspect_dataset: nowhere.idx: open: No such file *
#
#   1
set -euo pipefail
export LC_ALL=C

usage() { sed -n '/^# usage:/s/^# //p' "${BASH_SOURCE[0]}"; }

# Set by main and read by the functions below.
update=0
scratch=

# expected EXTENSION DEFAULT: prints the path of the expected file, or of a file that holds the
# default.
expected() {
  if [[ -e $case_base.$1 ]]; then
    echo "$case_base.$1"
  else
    printf '%s' "$2" >"$scratch/default.$1"
    echo "$scratch/default.$1"
  fi
}

# lines_match W F: succeeds if the lines of `found` from F on match the patterns of `wanted` from W
# on.
lines_match() {
  local w=$1 f=$2 later
  for (( ; w < ${#wanted[@]}; ++w, ++f)); do
    if [[ ${wanted[w]} == '\.\.\.' ]]; then
      for ((later = f; later <= ${#found[@]}; ++later)); do
        lines_match $((w + 1)) "$later" && return 0
      done
      return 1
    fi
    ((f < ${#found[@]})) || return 1
    # shellcheck disable=SC2053  # the right-hand side is meant as a pattern
    [[ ${found[f]} == ${wanted[w]} ]] || return 1
  done
  ((f == ${#found[@]}))
}

# stderr_matches: succeeds if the case's stderr matches CASE.err.
stderr_matches() {
  local wanted found
  # Every character except `*`, letters and digits is escaped, so that it is matched literally.
  mapfile -t wanted < <(sed 's/[^[:alnum:]*]/\\&/g' "$(expected err '')")
  mapfile -t found <"$scratch/err"
  lines_match 0 0
}

# keep EXTENSION DEFAULT: saves the actual result as the expected file; a default result needs no
# file.
keep() {
  printf '%s' "$2" | cmp -s - "$scratch/$1" && { rm -f -- "$case_base.$1"; return; }
  cp -- "$scratch/$1" "$case_base.$1"
}

# run_case CASE.sh: returns 0 if the case passes, 1 if it fails, 77 if it cannot run here.
run_case() {
  local case_file=$1 case_base status=0 verdict=0
  if [[ $case_file != *.sh || ! -f $case_file ]]; then
    echo "run_case.sh: there is no case '$case_file'" >&2
    return 1
  fi
  case_file=$(realpath -- "$case_file")
  case_base=${case_file%.sh}
  rm -rf -- "${scratch:?}"/*
  mkdir "$scratch/work"

  (
    cd "$scratch/work"
    CASE_DIR=$(dirname -- "$case_file") exec bash -euo pipefail "$case_file"
  ) </dev/null >"$scratch/out" 2>"$scratch/err" || status=$?
  printf '%s\n' "$status" >"$scratch/exit"
  sed -i '/^Processed [0-9]* documents /d' "$scratch/err"

  if [[ $status == 77 && ! -e $case_base.exit ]]; then
    sed 's/^/skipped: /' "$scratch/err"
    return 77
  fi

  if ((update)); then
    keep out ''
    stderr_matches || keep err ''
    keep exit $'0\n'
    return 0
  fi

  if ! diff -u --label "$case_base.exit" --label 'exit status' \
    "$(expected exit $'0\n')" "$scratch/exit"; then
    verdict=1
  fi
  if ! diff -u --label "$case_base.out" --label stdout "$(expected out '')" "$scratch/out"; then
    verdict=1
  fi
  if ! stderr_matches; then
    verdict=1
    diff -u --label "$case_base.err" --label stderr "$(expected err '')" "$scratch/err" || true
  fi
  return "$verdict"
}

main() {
  local here verdict=0 ran=0 skipped=0
  case ${1-} in
    -h | --help)
      usage
      exit 0
      ;;
    --update)
      update=1
      shift
      ;;
  esac
  if (($# == 0)) || [[ $1 == -* ]]; then
    usage >&2
    exit 2
  fi

  here=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")")
  MILLRACE_BIN=$(realpath -m -- "${MILLRACE_BIN:-$here/../../build/bin}")
  if [[ ! -d $MILLRACE_BIN ]]; then
    echo "run_case.sh: MILLRACE_BIN names no folder: $MILLRACE_BIN" >&2
    exit 1
  fi
  export MILLRACE_BIN PATH="$MILLRACE_BIN:$here/commands:$PATH"
  scratch=$(mktemp -d)
  trap 'rm -rf -- "$scratch"' EXIT

  for case_file in "$@"; do
    local result=0
    run_case "$case_file" || result=$?
    case $result in
      0) ran=$((ran + 1)) ;;
      77) skipped=$((skipped + 1)) ;;
      *)
        echo "run_case.sh: FAILED: $case_file"
        verdict=1
        ;;
    esac
  done
  if ((verdict == 0 && ran == 0 && skipped > 0)); then
    verdict=77
  fi
  exit "$verdict"
}

main "$@"
