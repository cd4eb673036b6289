// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

/// The replacement rules of a SentencePiece model, which tokenizer.json files also use. The rules
/// are stored as a double array in the layout of darts-clone. The replacements follow the array.
/// Each replacement ends with a zero byte. Immutable.
class charsmap {
 public:
  struct rule {
    std::size_t size_bytes = 0;  ///< size of the replaced text
    std::string_view replacement;
  };

  charsmap() = default;  ///< no rules

  /// @param blob    the charsmap as stored in the file
  /// @param offset  offset of `blob` in the file, in bytes
  /// @throws format_error  the layout is invalid, an index points outside the blob, or a
  ///                       replacement is not UTF-8 or begins inside a character
  charsmap(std::string_view blob, std::uint64_t offset);

  bool empty() const noexcept { return units_.empty(); }

  /// Of all rules whose text is a prefix of `text`, returns the one with the longest text, if any.
  /// SentencePiece uses this rule.
  std::optional<rule> find(std::string_view text) const noexcept;

  /// Of all rules whose text is a prefix of `text`, returns the one with the shortest text, if any.
  /// Ignores rules whose text contains a zero byte. Hugging Face uses this rule.
  std::optional<rule> find_shortest(std::string_view text) const noexcept;

  /// A character in the text of a rule.
  struct character {
    std::uint32_t value = 0;
    bool begins_rule = false;
    std::optional<std::string_view> replacement;  ///< set if a rule is for just this character
  };
  /// Calls `visit(character)` for each character in the texts of the rules. May visit the same
  /// character several times. Skips zero bytes, because the array alone does not show where they
  /// lead.
  /// @return false if the array needs too many steps or if a rule ends inside a character; then
  ///         some characters may not have been visited
  template <class Visit>
  bool for_each_character(Visit visit) const;

  /// True if `prefix` is a prefix of a rule's text, or equal to the text.
  bool has_prefix(std::string_view prefix) const noexcept;

 private:
  // A unit of the array has three fields. Bits 0 to 7 and 31 are the label; in a unit that holds a
  // value, the label equals no byte. Bit 8 is set if a rule ends at the unit. The remaining bits
  // encode the distance to the children.
  static constexpr std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FF; }
  static constexpr bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
  static constexpr std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFF; }
  static constexpr std::uint32_t distance_of(std::uint32_t unit) {
    return (unit >> 10) << ((unit & 0x200) >> 6);
  }

  // A character that is being read: some of its bytes may still be missing. `place` is the place in
  // the array to which the bytes so far lead.
  struct step {
    std::uint32_t value;
    std::uint32_t place;  // child unit index = place ^ byte
    std::uint32_t missing_bytes;
    std::uint32_t unit;
  };
  // Maximum number of steps of for_each_character. Real charsmaps need about 1% of it.
  static constexpr std::size_t max_steps = std::size_t{1} << 22;

  // Calls `found(byte, place, unit)` for each byte from `first` to `last` for which `place` has a
  // child.
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
  // Rules share suffixes, so each place is expanded only once.
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
