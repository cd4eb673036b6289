// SPDX-License-Identifier: Apache-2.0
#include "text/byte_trie.hpp"

#include <algorithm>
#include <string>

#include <millrace/error.hpp>

namespace millrace::tokenizer::detail {

// Places the nodes of a trie, depth first. The children of a node go into the first gap that fits
// all of them.
class byte_trie_builder {
 public:
  using entry = std::pair<std::string_view, std::int32_t>;

  explicit byte_trie_builder(byte_trie& trie) : trie_(trie) {
    grow();
    taken_[0] = true;
    trie_.units_[0] = 0;
  }

  void build(std::span<const entry> entries) {
    // Use a loop instead of recursion, because a piece may have 8,000 bytes.
    std::vector<family> open;
    open.push_back({entries, byte_trie::root, 0});
    while (!open.empty()) {
      const family next = open.back();
      open.pop_back();
      place(next, open);
    }
  }

 private:
  struct family {
    std::span<const entry> entries;  // the entries that begin with the string of `parent`
    byte_trie::node parent;
    std::size_t depth;
  };

  // Number of free places that are tried for a family before a new block is added.
  static constexpr std::size_t max_tries = 512;

  void place(family f, std::vector<family>& open) {
    if (!f.entries.empty() && f.entries.front().first.size() == f.depth) {
      trie_.units_[f.parent] |= byte_trie::has_value;
      trie_.values_[f.parent] = f.entries.front().second;
      f.entries = f.entries.subspan(1);
    }
    if (f.entries.empty()) {  // base 0 means no children: unit 0 is never a child
      trie_.units_[f.parent] |= 0U << byte_trie::base_shift;
      return;
    }
    bytes_.clear();
    starts_.clear();
    for (std::size_t i = 0; i < f.entries.size(); ++i) {
      const auto byte = static_cast<unsigned char>(f.entries[i].first[f.depth]);
      if (bytes_.empty() || bytes_.back() != byte) {
        bytes_.push_back(byte);
        starts_.push_back(i);
      }
    }
    const std::uint32_t base = free_base();
    base_taken_[base] = true;
    trie_.units_[f.parent] |= base << byte_trie::base_shift;
    starts_.push_back(f.entries.size());
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      const byte_trie::node child = base ^ bytes_[i];
      taken_[child] = true;
      trie_.units_[child] = byte_trie::in_use | bytes_[i];
      open.push_back(
          {f.entries.subspan(starts_[i], starts_[i + 1] - starts_[i]), child, f.depth + 1});
    }
  }

  std::uint32_t free_base() {
    while (first_free_ < taken_.size() && taken_[first_free_]) ++first_free_;
    std::size_t tries = 0;
    for (std::size_t at = first_free_; at < taken_.size() && tries < max_tries; ++at) {
      if (taken_[at]) continue;
      ++tries;
      const auto base = static_cast<std::uint32_t>(at) ^ bytes_.front();
      if (fits(base)) return base;
    }
    // Later families skip the first of these free places, because a family rarely fits there.
    if (tries == max_tries) first_free_ += max_tries / 8;
    const auto base = static_cast<std::uint32_t>(taken_.size());
    grow();
    return base;
  }

  bool fits(std::uint32_t base) const {
    // Base 0 means that there are no children.
    return base != 0 && !base_taken_[base] &&
           std::ranges::none_of(bytes_, [&](unsigned byte) { return taken_[base ^ byte]; });
  }

  void grow() {
    const std::size_t size = taken_.size() + 256;
    if (size > byte_trie::max_units) {
      throw config_error("the pieces need a trie of more than " +
                         std::to_string(byte_trie::max_units) + " places");
    }
    taken_.resize(size);
    base_taken_.resize(size);
    trie_.units_.resize(size);
    trie_.values_.resize(size, -1);
  }

  byte_trie& trie_;
  std::vector<bool> taken_;
  std::vector<bool> base_taken_;
  std::size_t first_free_ = 0;
  std::vector<unsigned> bytes_;
  std::vector<std::size_t> starts_;
};

byte_trie::byte_trie(std::vector<std::pair<std::string_view, std::int32_t>> entries)
    : empty_(entries.empty()) {
  std::ranges::sort(entries);
  byte_trie_builder(*this).build(entries);
}

}  // namespace millrace::tokenizer::detail
