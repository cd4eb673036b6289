#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures the GPU parts with various options, and checks the commands that compile kernels. Compiles
# nothing. Without nvcc, prints so and exits with status 77.
#
# usage: kernel_flags.sh CMAKE SOURCE_DIR BUILD_DIR
set -eu
cmake=$1
source=$2
build=$3
rm -rf -- "$build"
mkdir -p -- "$build"
unset CUDAHOSTCXX
# Configuring does not run the host compiler of nvcc, so these files need not work.
for compiler in from_variable from_environment; do
  printf '#!/bin/sh\nexit 1\n' >"$build/$compiler"
  chmod +x "$build/$compiler"
done

# configure NAME [OPTION...]: configures into the folder NAME, and stores its nvcc commands in NAME.txt.
configure() {
  name=$1
  shift
  "$cmake" -C "$source/scripts/presets/release.cmake" -S "$source" -B "$build/$name" -DMILLRACE_DEV=ON \
    -DMILLRACE_PARTS=loader -DMILLRACE_WITH_URING=OFF --no-warn-unused-cli "$@" \
    >"$build/$name.log" 2>&1 || {
    cat "$build/$name.log"
    exit 1
  }
  if grep -q 'millrace: without CUDA' "$build/$name.log"; then
    echo 'skipped: there is no nvcc here'
    exit 77
  fi
  grep -E '^ *COMMAND = .*nvcc .* -c .*\.cu ' "$build/$name/build.ninja" >"$build/$name.txt"
}

# each NAME PATTERN: every nvcc command of NAME contains the text PATTERN.
each() {
  if grep -v -F -e "$2" "$build/$1.txt"; then
    echo "kernel_flags: the commands above (configuration $1) lack: $2"
    exit 1
  fi
}

# none NAME PATTERN: no nvcc command of NAME contains the text PATTERN.
none() {
  if grep -F -e "$2" "$build/$1.txt"; then
    echo "kernel_flags: the commands above (configuration $1) contain: $2"
    exit 1
  fi
}

configure usual
grep -q launch_batch.cu "$build/usual.txt"  # proves that the commands were found
each usual ' -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 '
each usual ' -gencode=arch=compute_100,code=sm_100 -gencode=arch=compute_100,code=compute_100 '
none usual ' -arch'
none usual 'Werror'
none usual 'warning-as-error'
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/usual/CMakeCache.txt")
each usual " -ccbin $compiler "

for architectures in native all-major all; do
  configure $architectures -DMILLRACE_CUDA_ARCHITECTURES=$architectures
  each $architectures " -arch=$architectures "
  none $architectures ' -gencode'
  none $architectures 'Werror'
done

configure two '-DMILLRACE_CUDA_ARCHITECTURES=75;86'
each two ' -gencode=arch=compute_75,code=sm_75 -gencode=arch=compute_86,code=sm_86 '
each two ' -gencode=arch=compute_86,code=compute_86 '
none two 'compute_75,code=compute_75'
none two 'compute_80'

configure release -DMILLRACE_CUDA_ARCHITECTURES=release
each release ' -gencode=arch=compute_75,code=sm_75 '
each release ' -gencode=arch=compute_75,code=compute_75 '
each release ' -gencode=arch=compute_90,code=sm_90 '

configure strict -DCMAKE_COMPILE_WARNING_AS_ERROR=ON
each strict ' -Werror all-warnings '

configure variable "-DCMAKE_CUDA_HOST_COMPILER=$build/from_variable"
each variable " -ccbin $build/from_variable "

CUDAHOSTCXX=$build/from_environment
export CUDAHOSTCXX
configure environment
each environment " -ccbin $build/from_environment "
configure both "-DCMAKE_CUDA_HOST_COMPILER=$build/from_variable"
each both " -ccbin $build/from_variable "
# Ninja runs CMake again when a file of the build has changed, perhaps without the variable.
unset CUDAHOSTCXX
configure environment
each environment " -ccbin $build/from_environment "
