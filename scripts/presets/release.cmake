# SPDX-License-Identifier: Apache-2.0
# The build for users, to which scripts/test adds its test programs:
#   cmake -C scripts/presets/release.cmake -S . -B build
include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG" CACHE STRING "")
set(MILLRACE_DEV OFF CACHE BOOL "")
