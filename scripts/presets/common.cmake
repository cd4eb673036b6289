# SPDX-License-Identifier: Apache-2.0
# Settings of every preset, which include() this file; not for direct use.

# Uses Ninja unless the command line or the environment sets a generator, and ccache if it is installed.
if(NOT DEFINED CMAKE_GENERATOR AND NOT DEFINED ENV{CMAKE_GENERATOR})
  set(CMAKE_GENERATOR Ninja CACHE INTERNAL "")
endif()

find_program(MILLRACE_CCACHE ccache)
if(MILLRACE_CCACHE)
  # All checkouts share one cache, in any folder.
  get_filename_component(checkout "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${checkout};CCACHE_NOHASHDIR=1;${MILLRACE_CCACHE}"
      CACHE STRING "")
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON CACHE BOOL "")

# The version of clang that the gate uses, or the installed one.
macro(millrace_use_clang)
  find_program(MILLRACE_CLANG NAMES clang++-14 clang++ REQUIRED)
  set(CMAKE_CXX_COMPILER "${MILLRACE_CLANG}" CACHE FILEPATH "")
endmacro()
