// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "regex/regex_memory.hpp"

namespace millrace::tokenizer::detail {

/// A pattern over bytes, as PCRE2 compiles it: to machine code where it can. Immutable, shared by
/// threads.
///
/// A build may do without the library; then no pattern can be made.
class pcre2_pattern {
 public:
  enum class engine : std::uint8_t {
    fastest,
    interpreter,  ///< as where machine code cannot be made, e.g. by a process that may not
  };

  /// @param source  what symbol_pattern writes
  /// @throws pattern_error  it is too large, or this build is without PCRE2
  explicit pcre2_pattern(const std::string& source, engine how = engine::fastest);
  ~pcre2_pattern();
  pcre2_pattern(pcre2_pattern&&) noexcept;
  pcre2_pattern& operator=(pcre2_pattern&&) noexcept;

  struct result {
    enum class kind : std::uint8_t { nothing, match, problem } what = kind::nothing;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string_view problem;  ///< why nobody knows whether there is a match, of static lifetime
  };

  /// The first match that begins at `from` or behind it; what lies before is there to look back at.
  ///
  /// An attempt may take 10 million steps and 50 for each byte of `subject` besides, and 256 MiB.
  result find(std::string_view subject, std::size_t from, pcre2_memory& memory) const;

 private:
  struct compiled;
  std::unique_ptr<const compiled> compiled_;
};

/// Of the library, e.g. "10.42"; empty if this build is without it.
std::string pcre2_version();

}  // namespace millrace::tokenizer::detail
