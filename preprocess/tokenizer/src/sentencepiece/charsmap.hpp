// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

/// The replacement rules in a SentencePiece model, which tokenizer.json files take over: a double
/// array in the layout of darts-clone, and behind it the replacements, each ended by a zero byte.
/// Immutable.
class charsmap {
 public:
  struct rule {
    std::size_t size_bytes = 0;  ///< of the text that is replaced
    std::string_view replacement;
  };

  charsmap() = default;  ///< no rules

  /// @param blob    as in the file
  /// @param offset  of it in the file
  /// @throws format_error  it is not laid out so, a place in it points outside, or a
  ///                       replacement is not UTF-8
  charsmap(std::string_view blob, std::uint64_t offset);

  bool empty() const noexcept { return units_.empty(); }

  /// The rule with the longest text that `text` begins with, if any: SentencePiece's choice.
  std::optional<rule> find(std::string_view text) const noexcept;

  /// The one with the shortest text, none with a zero byte in it: Hugging Face's choice.
  std::optional<rule> find_shortest(std::string_view text) const noexcept;

  /// Whether any rule's text begins with `prefix` (and may be it).
  bool has_prefix(std::string_view prefix) const noexcept;

 private:
  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace millrace::tokenizer::detail
