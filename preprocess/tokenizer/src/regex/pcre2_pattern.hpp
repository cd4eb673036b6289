// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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

/// A pattern over bytes. PCRE2 compiles it, to machine code if possible. Immutable; threads may
/// share it.
///
/// In a build without PCRE2, the constructor always throws.
class pcre2_pattern {
 public:
  enum class engine : std::uint8_t {
    fastest,
    interpreter,  ///< also used if the process cannot or may not generate machine code
  };

  /// What the bytes of patterns and subjects are.
  enum class alphabet : std::uint8_t {
    symbols,  ///< as in symbol_pattern()
    utf8,     ///< characters; no match contains a byte that is not UTF-8
  };

  /// @throws pattern_error  PCRE2 rejects the pattern, e.g. because it is too large, or this build
  ///                        has no PCRE2
  explicit pcre2_pattern(const std::string& source, engine how = engine::fastest,
                         alphabet bytes = alphabet::symbols);
  ~pcre2_pattern();

  struct result {
    enum class kind : std::uint8_t { nothing, match, problem } what = kind::nothing;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string_view problem;  ///< why the search failed; static lifetime
  };

  /// Finds the first match that begins at or after `from`. Look-behind sees the text before `from`.
  /// If `not_empty`, an empty match at `from` does not count.
  ///
  /// A search gives up after 10 million steps plus 50 steps per byte of `subject`, or when it needs
  /// more than 256 MiB of memory.
  result find(std::string_view subject, std::size_t from, pcre2_memory& memory,
              bool not_empty = false) const;

 private:
  struct compiled;
  std::unique_ptr<const compiled> compiled_;
};

/// Version of the PCRE2 library, e.g. "10.42"; empty if this build has no PCRE2.
std::string pcre2_version();

}  // namespace millrace::tokenizer::detail
