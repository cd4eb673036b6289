#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures the GPU parts while CMake finds no packages except Threads and CUDA. With --build, also builds
# them. No object may then depend on a header of another project.
#
# usage: bare_build.sh CMAKE SOURCE_DIR BUILD_DIR [--build]
set -eu
cmake=$1
source=$2
build=$3
absent='Boost TBB simdjson fmt zstd GTest benchmark ICU PCRE2 Python3 MPI'
flags=
for package in $absent; do
  flags="$flags -DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"
done
# shellcheck disable=SC2086  # words
"$cmake" -C "$source/scripts/presets/release.cmake" -S "$source" -B "$build" -DMILLRACE_DEV=ON \
  -DMILLRACE_PARTS=loader -DMILLRACE_WITH_URING=OFF --no-warn-unused-cli $flags
[ "${4-}" = --build ] || exit 0
"$cmake" --build "$build" --target all tests_gpu benches
headers='/include/(boost|tbb|oneapi|fmt|gtest|gmock|benchmark|simdjson|zstd|liburing|unicode|pcre2|mpi)'
if ninja -C "$build" -t deps | grep -E "$headers"; then
  echo 'bare_build: the headers above belong to other projects'
  exit 1
fi
ninja -C "$build" -t deps | grep -q -F indexed_dataset.hpp  # proves that the command above saw dependencies
