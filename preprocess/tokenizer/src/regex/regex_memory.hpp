// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace millrace::tokenizer::detail {

/// What PCRE2 works in. It holds nothing until the first search.
class pcre2_memory {
 public:
  pcre2_memory() noexcept;
  ~pcre2_memory();
  pcre2_memory(pcre2_memory&&) noexcept;
  pcre2_memory& operator=(pcre2_memory&&) noexcept;

 private:
  friend class pcre2_pattern;
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// What searches with regular expressions work in, kept from one text to the next. For one thread.
struct regex_memory {
  std::string symbols;
  pcre2_memory engine;
};

}  // namespace millrace::tokenizer::detail
