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

  /// A character of a rule, as UTF-8 has it.
  struct character {
    std::uint32_t value = 0;
    bool begins_rule = false;
    std::optional<std::string_view> replacement;  ///< of a rule that is this character alone
  };
  /// Calls `visit(character)` with every character that a rule begins with, and with every one that
  /// comes later in a rule, some of them several times. Zero bytes are left out: where one leads is
  /// not to be told from the array alone.
  /// @return false, and not all were visited, if the array is too tangled, or a rule ends inside a
  ///         character
  template <class Visit>
  bool for_each_character(Visit visit) const;

  /// Whether any rule's text begins with `prefix` (and may be it).
  bool has_prefix(std::string_view prefix) const noexcept;

 private:
  // A unit of the array: bits 0-7 and 31 the label, which no byte equals in a unit that holds a
  // value; bit 8 whether a rule ends there; the rest the distance to the children.
  static constexpr std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FF; }
  static constexpr bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
  static constexpr std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFF; }
  static constexpr std::uint32_t distance_of(std::uint32_t unit) {
    return (unit >> 10) << ((unit & 0x200) >> 6);
  }

  // A character, or the first bytes of one, and where it leads.
  struct step {
    std::uint32_t value;
    std::uint32_t place;  // that its children are around
    std::uint32_t missing_bytes;
    std::uint32_t unit;
  };
  // Real maps need a hundredth of it.
  static constexpr std::size_t max_steps = std::size_t{1} << 22;

  // Calls `found(step)` with every byte from `first` to `last` that leads on from `place`.
  template <class Found>
  void for_each_byte(std::uint32_t place, std::uint32_t first, std::uint32_t last,
                     Found found) const {
    for (std::uint32_t byte = first; byte <= last; ++byte) {
      const std::uint32_t unit = units_[place ^ byte];
      if (label_of(unit) == byte) found(byte, place ^ byte ^ distance_of(unit), unit);
    }
  }

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

template <class Visit>
bool charsmap::for_each_character(Visit visit) const {
  if (units_.empty()) return true;
  // Rules share their ends: what can follow is looked at once for each place.
  std::vector<bool> seen(units_.size());
  std::vector<std::uint32_t> places = {distance_of(units_[0])};
  std::vector<step> open;
  std::size_t steps = 0;
  for (bool first = true; !places.empty(); first = false) {
    const std::uint32_t start = places.back();
    places.pop_back();
    const auto begin = [&](std::uint32_t byte, std::uint32_t place, std::uint32_t unit) {
      const std::uint32_t missing = byte < 0x80 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
      open.push_back({missing == 0 ? byte : byte & (0x3FU >> missing), place, missing, unit});
    };
    for_each_byte(start, 1, 0x7F, begin);
    for_each_byte(start, 0xC2, 0xF4, begin);
    while (!open.empty()) {
      const step at = open.back();
      open.pop_back();
      if (++steps > max_steps) return false;
      if (at.missing_bytes != 0) {
        if (has_leaf(at.unit)) return false;
        for_each_byte(
            at.place, 0x80, 0xBF, [&](std::uint32_t byte, std::uint32_t place, std::uint32_t unit) {
              open.push_back({at.value << 6 | (byte & 0x3F), place, at.missing_bytes - 1, unit});
            });
        continue;
      }
      character c{at.value, first, {}};
      if (first && has_leaf(at.unit)) {
        c.replacement = std::string_view(replacements_.data() + value_of(units_[at.place]));
      }
      visit(c);
      if (!seen[at.place]) places.push_back(at.place);
      seen[at.place] = true;
    }
  }
  return true;
}

}  // namespace millrace::tokenizer::detail
