# SPDX-License-Identifier: Apache-2.0
# Finds PCRE2. (Debian's PCRE2 package has no CMake configuration.) Sets MILLRACE_HAS_PCRE2 and, if
# PCRE2 is found, PCRE2_LIBRARY and PCRE2_INCLUDE_DIR. The programs' --version shows the result.
set(MILLRACE_WITH_PCRE2 AUTO CACHE STRING
    "Regular expressions of any kind in a tokenizer.json: ON, OFF, or AUTO (where PCRE2 is found)")
set(MILLRACE_HAS_PCRE2 OFF)
# The oldest version that is tested. pcre2_pattern.cpp works around its known bugs.
set(needed_pcre2 10.42)
set(problem "it is switched off (MILLRACE_WITH_PCRE2)")
if(MILLRACE_WITH_PCRE2)
  find_library(PCRE2_LIBRARY NAMES pcre2-8)
  find_path(PCRE2_INCLUDE_DIR NAMES pcre2.h)
  if(PCRE2_LIBRARY AND PCRE2_INCLUDE_DIR)
    file(STRINGS "${PCRE2_INCLUDE_DIR}/pcre2.h" lines REGEX "#define PCRE2_M(AJ|IN)OR[ \t]+[0-9]+")
    string(REGEX REPLACE "[^0-9;]*PCRE2_(MAJOR|MINOR)[ \t]*" "" lines "${lines}")
    string(REPLACE ";" "." found "${lines}")
    if(found VERSION_GREATER_EQUAL needed_pcre2)
      set(MILLRACE_HAS_PCRE2 ON)
    else()
      set(problem "${PCRE2_INCLUDE_DIR}/pcre2.h is of PCRE2 \"${found}\"")
      string(APPEND problem ", expected ${needed_pcre2} or later")
    endif()
  else()
    set(problem "there is no pcre2-8 with its headers here")
  endif()
  if(NOT MILLRACE_HAS_PCRE2 AND NOT MILLRACE_WITH_PCRE2 STREQUAL "AUTO")
    message(FATAL_ERROR "MILLRACE_WITH_PCRE2 is ON, but ${problem}")
  endif()
endif()
if(NOT MILLRACE_HAS_PCRE2)
  message(STATUS "millrace: without PCRE2, as ${problem}; so a tokenizer.json with a regular "
                 "expression we have no code of our own for is refused")
endif()
