# SPDX-License-Identifier: Apache-2.0
# AddressSanitizer and UndefinedBehaviorSanitizer, by clang; the first finding ends the program:
#   cmake -C scripts/presets/asan.cmake -S . -B build/asan
include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
millrace_use_clang()
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1" CACHE STRING "")
set(CMAKE_CXX_FLAGS
    "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
    CACHE STRING "")
set(CMAKE_COMPILE_WARNING_AS_ERROR ON CACHE BOOL "")
set(MILLRACE_DEV ON CACHE BOOL "")
