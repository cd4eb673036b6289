// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "composed/growth_limit.hpp"

namespace millrace::tokenizer::detail {

/// Text to text, before anything else looks at it. Immutable, shared by threads.
class normalizer {
 public:
  virtual ~normalizer() = default;

  /// The normalized text: `text` itself where nothing changes, else `buffer`, which is
  /// overwritten. Valid UTF-8 in and out.
  ///
  /// @param limit  of the text that the first normalizer was given
  /// @pre `text` does not lie in `buffer`
  /// @throws unencodable_text  the text grows beyond the limit, or a regular expression gives up
  virtual std::string_view normalize(std::string_view text, std::string& buffer,
                                     growth_limit& limit) const = 0;

  /// The same for a text that no normalizer has seen yet.
  std::string_view normalize(std::string_view text, std::string& buffer) const {
    growth_limit limit(text.size());
    return normalize(text, buffer, limit);
  }

  /// Whether texts that have `text` in them may be cut there at `at`: whatever is before it and
  /// behind it, both sides normalized are the whole normalized, and the characters next to the cut
  /// are as they were, but for the case of ASCII letters.
  /// @pre 0 < at < text.size(), a character begins at `at`
  virtual bool may_cut(std::string_view text, std::size_t at) const {
    static_cast<void>(text);
    static_cast<void>(at);
    return false;
  }
};

}  // namespace millrace::tokenizer::detail
