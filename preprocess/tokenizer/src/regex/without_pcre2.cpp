// SPDX-License-Identifier: Apache-2.0
// Replaces pcre2_pattern.cpp in a build without PCRE2.
#include "regex/pattern_tree.hpp"
#include "regex/pcre2_pattern.hpp"

namespace millrace::tokenizer::detail {

struct pcre2_memory::parts {};
pcre2_memory::pcre2_memory() noexcept = default;
pcre2_memory::~pcre2_memory() = default;

struct pcre2_pattern::compiled {};
pcre2_pattern::~pcre2_pattern() = default;

pcre2_pattern::pcre2_pattern(const std::string&, engine, alphabet bytes) {
  throw pattern_error(bytes == alphabet::utf8
                          ? "this build of millrace has no PCRE2, so it cannot search for regular "
                            "expressions; install libpcre2-dev and rebuild"
                          : "this build of millrace has no PCRE2, so it supports only the regular "
                            "expressions of well-known pre-tokenizers; install libpcre2-dev and "
                            "rebuild");
}

pcre2_pattern::result pcre2_pattern::find(std::string_view, std::size_t, pcre2_memory&,
                                          bool) const {
  return {};
}

std::string pcre2_version() {
  return {};
}

}  // namespace millrace::tokenizer::detail
