# SPDX-License-Identifier: Apache-2.0
# A release build for 64-bit ARM, with the compiler and the libraries that `scripts/setup --aarch64`
# installs. qemu-aarch64 runs its tests:
#   cmake -C scripts/presets/aarch64.cmake -S . -B build/aarch64
include("${CMAKE_CURRENT_LIST_DIR}/release.cmake")
get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/../../build/aarch64-root" ABSOLUTE)
set(CMAKE_SYSTEM_NAME Linux CACHE STRING "")
set(CMAKE_SYSTEM_PROCESSOR aarch64 CACHE STRING "")
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++ CACHE STRING "")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu CACHE STRING "")
set(CMAKE_SYSROOT "${root}" CACHE PATH "")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER CACHE STRING "")
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY CACHE STRING "")
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;${root}" CACHE STRING "")
set(CMAKE_COMPILE_WARNING_AS_ERROR ON CACHE BOOL "")
set(MILLRACE_WITH_MPI OFF CACHE STRING "")
set(MILLRACE_WITH_CUDA OFF CACHE STRING "")
set(MILLRACE_DEV ON CACHE BOOL "" FORCE)
