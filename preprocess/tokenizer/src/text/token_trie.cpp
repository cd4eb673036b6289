// SPDX-License-Identifier: Apache-2.0
#include "text/token_trie.hpp"

#include <bit>
#include <utility>

namespace millrace::tokenizer::detail {

token_trie::token_trie()
    : first_(256, nowhere), edges_(64), shift_(64 - std::countr_zero(edges_.size())) {
  tokens_.push_back(none);
}

void token_trie::insert(std::uint64_t key, node to) noexcept {
  std::size_t at = home(key);
  while (edges_[at].key != 0) at = (at + 1) & (edges_.size() - 1);
  edges_[at] = {key, to};
}

void token_trie::add(std::string_view bytes, std::int32_t id) {
  node at = root;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    node to = next(at, byte);
    if (to == nowhere) {
      to = static_cast<node>(tokens_.size());
      tokens_.push_back(none);
      if (at == root) {
        first_[byte] = to;
      } else {
        if (2 * ++edge_count_ > edges_.size()) {
          const auto old = std::exchange(edges_, std::vector<edge>(2 * edges_.size()));
          --shift_;
          for (const edge& e : old) {
            if (e.key != 0) insert(e.key, e.to);
          }
        }
        insert(key_of(at, byte), to);
      }
    }
    at = to;
  }
  tokens_[at] = id;
}

}  // namespace millrace::tokenizer::detail
