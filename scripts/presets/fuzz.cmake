# SPDX-License-Identifier: Apache-2.0
# Fuzz targets driven by libFuzzer instead of their replay main, with ASan and UBSan, by clang:
#   cmake -C scripts/presets/fuzz.cmake -S . -B build/fuzz
include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
millrace_use_clang()
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1" CACHE STRING "")
# fuzzer-no-link: everything counts coverage, only the fuzz targets get libFuzzer's main.
set(CMAKE_CXX_FLAGS
    "-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
    CACHE STRING "")
set(MILLRACE_LIBFUZZER ON CACHE BOOL "")
set(MILLRACE_DEV ON CACHE BOOL "")
