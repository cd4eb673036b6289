// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace millrace::tokenizer::detail {

/// Working memory of PCRE2. Empty until the first search.
class pcre2_memory {
 public:
  pcre2_memory() noexcept;
  ~pcre2_memory();

 private:
  friend class pcre2_pattern;
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// Working memory of regex searches, reused from one text to the next. Use from one thread only.
struct regex_memory {
  std::string symbols;
  pcre2_memory engine;
};

}  // namespace millrace::tokenizer::detail
