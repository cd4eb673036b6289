// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// Example:
//
//     const millrace::tokenizer::text_pattern pattern("colou?r");
//     const auto find = pattern.make_finder();
//     if (const auto match = find("no color", 0, false)) std::cout << match->first << '\n';

namespace millrace::tokenizer {

namespace detail {
class pcre2_pattern;
}  // namespace detail

/// A regular expression over UTF-8 texts, in the syntax of PCRE2. Character classes such as `\w`
/// are those of Unicode. Copies share one compiled pattern.
class text_pattern {
 public:
  /// @throws config_error  PCRE2 rejects the pattern; the message has its reason and byte
  /// @throws error         this build has no PCRE2
  explicit text_pattern(const std::string& pattern);

  /// Finds the first match in `text` that begins at or after `from`, as bytes [begin, end). If
  /// `not_empty`, an empty match at `from` does not count. Look-behind sees the text before `from`.
  /// A match never contains bytes that are not UTF-8.
  ///
  /// Throws `error` if a search takes more than 10 million steps plus 50 steps per byte, or more
  /// than 256 MiB of memory.
  using finder = std::function<std::optional<std::pair<std::size_t, std::size_t>>(
      std::string_view text, std::size_t from, bool not_empty)>;

  /// @return a finder for one thread, which owns what it needs
  finder make_finder() const;

 private:
  std::shared_ptr<const detail::pcre2_pattern> pattern_;
};

}  // namespace millrace::tokenizer
