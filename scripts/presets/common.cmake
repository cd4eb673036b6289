# SPDX-License-Identifier: Apache-2.0
# What every preset shares; include()d by them, not for use by itself.

# Ninja unless the command line or the environment says otherwise. ccache where there is one.
if(NOT DEFINED CMAKE_GENERATOR AND NOT DEFINED ENV{CMAKE_GENERATOR})
  set(CMAKE_GENERATOR Ninja CACHE INTERNAL "")
endif()

find_program(MILLRACE_CCACHE ccache)
if(MILLRACE_CCACHE)
  # One cache serves every checkout, wherever it is.
  get_filename_component(checkout "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${checkout};CCACHE_NOHASHDIR=1;${MILLRACE_CCACHE}"
      CACHE STRING "")
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON CACHE BOOL "")

# The clang that the project is kept clean with, or the one that there is.
macro(millrace_use_clang)
  find_program(MILLRACE_CLANG NAMES clang++-14 clang++ REQUIRED)
  set(CMAKE_CXX_COMPILER "${MILLRACE_CLANG}" CACHE FILEPATH "")
endmacro()
