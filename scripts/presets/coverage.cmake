# SPDX-License-Identifier: Apache-2.0
# Line and branch counts, by gcc; read them with gcov or any front end of it:
#   cmake -C scripts/presets/coverage.cmake -S . -B build/coverage
include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g" CACHE STRING "")
set(CMAKE_CXX_FLAGS "--coverage -fprofile-update=atomic" CACHE STRING "")
# Counts are stored with each build's objects: a cached object would bring those of another build.
set(CMAKE_CXX_COMPILER_LAUNCHER "" CACHE STRING "" FORCE)
set(MILLRACE_DEV ON CACHE BOOL "")
