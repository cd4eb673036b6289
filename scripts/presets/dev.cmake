# SPDX-License-Identifier: Apache-2.0
# Optimised, with asserts, tests and benches; a warning is an error. What scripts/test builds:
#   cmake -C scripts/presets/dev.cmake -S . -B build/test
include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1" CACHE STRING "")
set(CMAKE_COMPILE_WARNING_AS_ERROR ON CACHE BOOL "")
set(MILLRACE_DEV ON CACHE BOOL "")
set(MILLRACE_TEST_PCH ON CACHE BOOL "")
