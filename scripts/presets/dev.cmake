# SPDX-License-Identifier: Apache-2.0
# For development: compiles fast, with asserts and line numbers; a warning is an error:
#   cmake -C scripts/presets/dev.cmake -S . -B build/dev
include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1" CACHE STRING "")
set(CMAKE_COMPILE_WARNING_AS_ERROR ON CACHE BOOL "")
set(MILLRACE_DEV ON CACHE BOOL "")
