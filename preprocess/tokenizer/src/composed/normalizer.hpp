// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace millrace::tokenizer::detail {

/// Text to text, before anything else looks at it. Immutable, shared by threads.
class normalizer {
 public:
  virtual ~normalizer() = default;

  /// The normalized text: `text` itself where nothing changes, else `buffer`, which is
  /// overwritten. Valid UTF-8 in and out.
  ///
  /// @pre `text` does not lie in `buffer`
  virtual std::string_view normalize(std::string_view text, std::string& buffer) const = 0;
};

}  // namespace millrace::tokenizer::detail
