# SPDX-License-Identifier: Apache-2.0
# What every preset shares; include()d by them, not for use by itself.

# Ninja unless the command line or the environment says otherwise. ccache where there is one.
if(NOT DEFINED CMAKE_GENERATOR AND NOT DEFINED ENV{CMAKE_GENERATOR})
  set(CMAKE_GENERATOR Ninja CACHE INTERNAL "")
endif()

find_program(MILLRACE_CCACHE ccache)
if(MILLRACE_CCACHE)
  # What it asks for before it keeps what was compiled with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${MILLRACE_CCACHE}"
      CACHE STRING "")
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON CACHE BOOL "")

# The clang that the project is kept clean with, or the one that there is.
macro(millrace_use_clang)
  find_program(MILLRACE_CLANG NAMES clang++-14 clang++ REQUIRED)
  set(CMAKE_CXX_COMPILER "${MILLRACE_CLANG}" CACHE FILEPATH "")
endmacro()

# Several sources to a translation unit: all that they share is compiled once, which takes half of the
# time. Where one is to be compiled again and again, each alone is better; and what it forgot to include shows.
if(DEFINED ENV{MILLRACE_UNITY})
  set(CMAKE_UNITY_BUILD "$ENV{MILLRACE_UNITY}" CACHE BOOL "")
endif()
