# SPDX-License-Identifier: Apache-2.0
# ThreadSanitizer, by clang; run the tests with tsan.supp from this folder:
#   cmake -C scripts/presets/tsan.cmake -S . -B build/tsan
#   TSAN_OPTIONS=suppressions=$PWD/scripts/presets/tsan.supp ctest --test-dir build/tsan -L "loader|cuda"
include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
millrace_use_clang()
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1" CACHE STRING "")
set(CMAKE_CXX_FLAGS "-fsanitize=thread -fno-omit-frame-pointer" CACHE STRING "")
set(CMAKE_COMPILE_WARNING_AS_ERROR ON CACHE BOOL "")
set(MILLRACE_DEV ON CACHE BOOL "")
