// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

/// Maps bytes to tokens, for look-ups that walk along a text. Such a walk finds all tokens that are
/// prefixes of the text, or only the longest. Immutable once built; then threads may share it.
///
/// All edges are in one hash table from (node, byte) to node. This costs about 16 bytes per edge,
/// regardless of the alphabet of the vocabulary.
class token_trie {
 public:
  using node = std::uint32_t;
  static constexpr node root = 0;
  static constexpr node nowhere = 0xFFFFFFFF;
  static constexpr std::int32_t none = -1;

  token_trie();

  /// Adds a token. Replaces an existing token with the same bytes.
  /// @pre id >= 0
  void add(std::string_view bytes, std::int32_t id);

  /// The child of `from` for `byte`, or `nowhere`.
  node next(node from, unsigned char byte) const noexcept {
    if (from == root) return first_[byte];
    const std::uint64_t key = key_of(from, byte);
    for (std::size_t at = home(key);; at = (at + 1) & (edges_.size() - 1)) {
      if (edges_[at].key == key) return edges_[at].to;
      if (edges_[at].key == 0) return nowhere;
    }
  }
  /// The token that ends at node `at`, or `none`.
  std::int32_t token(node at) const noexcept { return tokens_[at]; }

  /// The node that `bytes` lead to from node `from`, or `nowhere`.
  node walk(node from, std::string_view bytes) const noexcept {
    for (const char byte : bytes) {
      if (from == nowhere) break;
      from = next(from, static_cast<unsigned char>(byte));
    }
    return from;
  }

 private:
  struct edge {
    std::uint64_t key = 0;  // 0: empty (edges of the root are in first_, so no edge has key 0)
    node to = nowhere;
  };

  static std::uint64_t key_of(node from, unsigned char byte) noexcept {
    return std::uint64_t{from} << 8 | byte;
  }
  std::size_t home(std::uint64_t key) const noexcept { return key * 0x9E3779B97F4A7C15U >> shift_; }
  void insert(std::uint64_t key, node to) noexcept;

  std::vector<node> first_;  // children of the root, by byte
  std::vector<edge> edges_;  // size is a power of two; at most half full
  int shift_;
  std::size_t edge_count_ = 0;
  std::vector<std::int32_t> tokens_;  // by node
};

}  // namespace millrace::tokenizer::detail
