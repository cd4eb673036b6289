// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "bpe/token_table.hpp"

namespace millrace::tokenizer::detail {

/// From bytes to the token that has them. One array of ids and no copies of the bytes, so that an
/// index of 200,000 tokens is made in milliseconds.
class rank_index {
 public:
  /// @param tokens  outlives this; may grow meanwhile, and each new token has to be added here
  explicit rank_index(const token_table& tokens) : tokens_(&tokens), ids_(1024, none) {}

  std::optional<std::int32_t> find(std::string_view bytes) const noexcept {
    const std::int32_t id = ids_[place_of(bytes)];
    return id == none ? std::nullopt : std::optional(id);
  }

  /// Adds the token `id` of the table.
  /// @return nothing, or the token that has the same bytes: it stays.
  std::optional<std::int32_t> add(std::int32_t id) {
    if (2 * ++count_ > ids_.size()) grow();
    std::int32_t& place = ids_[place_of(tokens_->bytes(id))];
    if (place != none) return place;
    place = id;
    return std::nullopt;
  }

 private:
  static constexpr std::int32_t none = -1;

  // Where the token of these bytes is, or would be: at least half of the places are free.
  std::size_t place_of(std::string_view bytes) const noexcept {
    std::size_t at = std::hash<std::string_view>()(bytes) & (ids_.size() - 1);
    while (ids_[at] != none && tokens_->bytes(ids_[at]) != bytes) at = (at + 1) & (ids_.size() - 1);
    return at;
  }

  void grow() {
    const std::vector<std::int32_t> before = std::exchange(ids_, {});
    ids_.assign(2 * before.size(), none);
    for (const std::int32_t id : before) {
      if (id != none) ids_[place_of(tokens_->bytes(id))] = id;
    }
  }

  const token_table* tokens_;
  std::vector<std::int32_t> ids_;  // a power of two of them
  std::size_t count_ = 0;
};

}  // namespace millrace::tokenizer::detail
