// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::tokenizer::detail {

/// A double-array trie that maps strings to numbers. Each step reads one unit of four bytes.
/// Read-only once built.
class byte_trie {
 public:
  /// A node of the trie; `root` is the node of the empty string.
  using node = std::uint32_t;
  static constexpr node root = 0;
  static constexpr node none = 0xFFFFFFFF;

  byte_trie() : byte_trie(std::vector<std::pair<std::string_view, std::int32_t>>()) {}

  /// @param entries  distinct, nonempty strings with nonnegative numbers, in any order
  /// @throws config_error  the trie would need more than 4 million nodes
  explicit byte_trie(std::vector<std::pair<std::string_view, std::int32_t>> entries);

  bool empty() const noexcept { return empty_; }

  /// The child of `from` for `byte`, or `none`.
  node step(node from, unsigned char byte) const noexcept {
    const node to = place_of_child(units_[from], byte);
    return leads(units_[to], byte) ? to : none;
  }
  /// The number of the string that ends at node `at`, or -1.
  std::int32_t value(node at) const noexcept {
    return (units_[at] & has_value) != 0 ? values_[at] : -1;
  }
  bool is_end(node at) const noexcept { return (units_[at] & has_value) != 0; }
  /// Highest node + 1.
  std::size_t size() const noexcept { return units_.size(); }

  /// The unit of a node, for callers that keep units beside data of their own. Such a caller steps
  /// from the unit `from` to the node place_of_child(from, byte), if leads() is true for its unit.
  std::uint32_t unit(node at) const noexcept { return units_[at]; }
  static node place_of_child(std::uint32_t from, unsigned char byte) noexcept {
    return (from >> base_shift) ^ byte;
  }
  static bool leads(std::uint32_t child, unsigned char byte) noexcept {
    return (child & (in_use | 0xFF)) == (in_use | byte);
  }

  /// The number of a whole string, or -1.
  std::int32_t find(std::string_view text) const noexcept {
    node at = root;
    for (const char c : text) {
      at = step(at, static_cast<unsigned char>(c));
      if (at == none) return -1;
    }
    return value(at);
  }

 private:
  friend class byte_trie_builder;

  // A unit has four fields: the base of its children (22 bits; child = base ^ byte), whether the
  // unit is in use, whether a string ends there, and the byte that leads to it. No two parents
  // share a base, so the byte alone identifies the parent. The root is unit 0, which is never a
  // child.
  static constexpr unsigned base_shift = 10;
  static constexpr std::uint32_t in_use = 0x200;
  static constexpr std::uint32_t has_value = 0x100;
  static constexpr std::size_t max_units = std::size_t{1} << (32 - base_shift);

  std::vector<std::uint32_t> units_;  // size is a multiple of 256
  std::vector<std::int32_t> values_;  // by node
  bool empty_;
};

}  // namespace millrace::tokenizer::detail
