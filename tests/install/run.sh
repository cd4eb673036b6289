#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs a finished build into a temporary folder and uses it from a separate project. The project
# finds the package, includes every installed header in two sources, links, and reads a dataset with
# the loader. This runs three times: with the static libraries, with shared ones, and header-only.
# The project is compiled with flags that let a compiler fuse products and sums. Even then, blends
# must equal those of Megatron.
#
# usage: tests/install/run.sh BUILD_DIR
set -euo pipefail

if (($# != 1)) || [[ $1 == -* ]]; then
  sed -n '/^# usage:/s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
here=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")")
root=$here/../..
build=$(realpath -- "$1")
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

# cached NAME: prints the value of NAME in the CMake cache of the build.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

# quietly COMMAND...: runs a command, and prints its output only if it fails.
quietly() {
  "$@" >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
  }
}

# The same flags as the library, so that a sanitizer or coverage build links.
flags=$(cached CMAKE_CXX_FLAGS)
alike=(-G "$(cached CMAKE_GENERATOR)" -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)"
  -DCMAKE_CXX_COMPILER_LAUNCHER="$(cached CMAKE_CXX_COMPILER_LAUNCHER)")
contracting=
if grep -qw fma /proc/cpuinfo; then contracting=' -mfma -ffp-contract=fast'; fi

quietly cmake --install "$build" --prefix "$scratch/static"
# The shared build is in a folder next to the other build. So ccache sees the same relative paths
# and finds the objects in its cache.
quietly cmake -C "$root/scripts/presets/release.cmake" -S "$root" -B "$build-shared" "${alike[@]}" \
  -DCMAKE_CXX_FLAGS="$flags" -DBUILD_SHARED_LIBS=ON -DMILLRACE_DEV=OFF
quietly cmake --build "$build-shared"
quietly cmake --install "$build-shared" --prefix "$scratch/shared"

# The tokens of the byte-level tokenizer are the bytes of the text, then the end-of-document token.
printf '{"text": "%s"}\n' 'To be, or not to be' 'that is the question' >"$scratch/in.jsonl"
quietly "$scratch/static/bin/preprocess_data" --input "$scratch/in.jsonl" \
  --output-prefix "$scratch/data" --tokenizer-type ByteLevelTokenizer --append-eod

# Blends that Megatron's own helpers made.
golden=$root/../shared/golden/megatron_golden.json
blends=()
if [[ -r $golden ]]; then
  blends=("$scratch/blends")
  python3 - "$golden" >"${blends[0]}" <<'END'
import json, sys
for each in json.load(open(sys.argv[1]))["blend"]:
    if "exhaustive" in each:
        print("sizes", *each["exhaustive"])
    else:
        print("weights", *map(repr, each["normalized_twice"]))
    print(*each["dataset_index"])
    print(*each["dataset_sample_index"])
END
else
  echo 'without ../shared: blends are not compared'
fi

# expect LINE: fails unless the program has printed this line.
expect() {
  grep -qx -- "$1" "$scratch/printed" || {
    echo "run.sh: $form: expected \"$1\"" >&2
    exit 1
  }
}

for form in static shared header_only; do
  installed=$scratch/$form
  options=()
  if [[ $form == header_only ]]; then
    installed=$scratch/static
    options=(-DHEADER_ONLY=ON)
  fi
  quietly cmake -S "$here/consumer" -B "$scratch/$form.build" "${alike[@]}" "${options[@]}" \
    -DCMAKE_PREFIX_PATH="$installed" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="$flags$contracting"
  quietly cmake --build "$scratch/$form.build"
  printf '%s:\n' "$form"
  "$scratch/$form.build/consumer" "$scratch/data_text_document" "${blends[@]}" | tee "$scratch/printed"
  # The program requests eight tokens, which are the text "To be, o".
  expect 'first window: 84 111 32 98 101 44 32 111'
  expect 'caught: config_error'
  expect 'caught: io_error 2'
  if ((${#blends[@]})); then expect 'blends: 7'; fi
done

# The header-only form links neither library. The shared form loads both libraries.
if grep -rE 'libmillrace_(dataset|loader)\.' "$scratch/header_only.build" \
  --include=build.ninja --include=link.txt; then
  echo 'run.sh: header_only: the lines above link a library that the sources replace' >&2
  exit 1
fi
ldd "$scratch/shared.build/consumer" >"$scratch/loaded"
for library in dataset loader; do
  grep -q "libmillrace_$library\.so" "$scratch/loaded" || {
    echo "run.sh: shared: the program does not load libmillrace_$library.so" >&2
    exit 1
  }
done

# A shared library exports only symbols that are marked for export, not the helpers of its sources.
quietly nm -D --defined-only -C "$scratch"/shared/lib*/libmillrace_{dataset,loader}.so
cp "$scratch/log" "$scratch/shown"
for name in 'batch_loader::next' 'indexed_dataset::indexed_dataset'; do
  grep -qF "$name" "$scratch/shown" || {
    echo "run.sh: the shared libraries do not show $name" >&2
    exit 1
  }
done
if grep -E 'state_reader|on_lost_page|copy_armed' "$scratch/shown"; then
  echo 'run.sh: the shared libraries show the names above, which are private' >&2
  exit 1
fi

# A component that does not exist is refused, and the message names it.
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(none LANGUAGES CXX)' \
  'find_package(millrace REQUIRED COMPONENTS no_such_part)' >"$scratch/CMakeLists.txt"
if cmake -S "$scratch" -B "$scratch/none" "${alike[@]}" -DCMAKE_PREFIX_PATH="$scratch/static" \
  >"$scratch/log" 2>&1 || ! grep -q no_such_part "$scratch/log"; then
  echo 'run.sh: find_package must refuse the component no_such_part by its name' >&2
  exit 1
fi
