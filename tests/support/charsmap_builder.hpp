// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace millrace::test {

/// Builds a charsmap that replaces each key of `rules` with its value. The format is that of
/// SentencePiece models: a double array. Here, each node has a block of 256 units for its children.
///
/// @pre there are few rules; no key is empty
inline std::string charsmap_of(const std::map<std::string, std::string>& rules) {
  constexpr std::uint32_t block = 256;
  std::map<std::string, std::uint32_t> nodes{{"", 0}};  // prefix of a key -> index of its node
  std::vector<std::uint32_t> units(std::size_t{2} * block);
  units[0] = block << 10;
  std::string replacements;
  for (const auto& [text, replacement] : rules) {
    std::uint32_t children = block;
    for (std::size_t size = 1; size <= text.size(); ++size) {
      const auto byte = static_cast<unsigned char>(text[size - 1]);
      const auto [node, is_new] = nodes.try_emplace(text.substr(0, size), children ^ byte);
      if (is_new) {
        const auto fresh = static_cast<std::uint32_t>(units.size());
        units.resize(units.size() + block);
        units[node->second] = (node->second ^ fresh) << 10 | byte;
      }
      children = node->second ^ units[node->second] >> 10;
    }
    units[nodes.at(text)] |= 1U << 8;
    units[children] = 1U << 31 | static_cast<std::uint32_t>(replacements.size());
    replacements += replacement + '\0';
  }
  const auto trie_bytes = static_cast<std::uint32_t>(units.size() * sizeof units[0]);
  std::string blob(sizeof trie_bytes + trie_bytes, '\0');
  std::memcpy(blob.data(), &trie_bytes, sizeof trie_bytes);
  std::memcpy(blob.data() + sizeof trie_bytes, units.data(), trie_bytes);
  return blob + replacements;
}

}  // namespace millrace::test
