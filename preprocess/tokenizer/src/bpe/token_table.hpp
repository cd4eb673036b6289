// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include <millrace/error.hpp>

#include "core/table_io.hpp"

namespace millrace::tokenizer::detail {

/// The bytes of each token, indexed by id. Ids may have gaps. One array holds all bytes, so that
/// 200,000 tokens do not cost 200,000 allocations.
class token_table {
 public:
  /// Reserves memory for tokens of `size_bytes` bytes in total. Until the tokens exceed that size,
  /// add() does not invalidate the results of bytes().
  void reserve(std::size_t size_bytes) { bytes_.own().reserve(size_bytes); }

  /// @pre id >= 0, the table does not have this id yet, and was not read from a cache file
  /// @throws error  all tokens together have 4 GiB
  void add(std::int32_t id, std::string_view bytes) {
    if (bytes.size() >= none - bytes_.size()) throw error("the tokens have more than 4 GiB");
    const auto index = static_cast<std::size_t>(id);
    if (index >= places_.size()) places_.own().resize(index + 1);
    assert(places_[index].size == none);
    places_.own()[index] = {static_cast<std::uint32_t>(bytes_.size()),
                            static_cast<std::uint32_t>(bytes.size())};
    bytes_.own().insert(bytes_.own().end(), bytes.begin(), bytes.end());
    ++count_;
  }

  bool has(std::int64_t id) const noexcept {
    return id >= 0 && id < end_id() && places_[static_cast<std::size_t>(id)].size != none;
  }
  /// The bytes of a token. Valid until the next add(), or longer if reserve() guarantees it.
  /// @pre has(id)
  std::string_view bytes(std::int64_t id) const noexcept {
    const place& p = places_[static_cast<std::size_t>(id)];
    return {bytes_.data() + p.begin, p.size};
  }

  std::size_t count() const noexcept { return count_; }
  /// The highest id plus 1.
  std::int64_t end_id() const noexcept { return static_cast<std::int64_t>(places_.size()); }

  template <class Io, class Self>
  static void fields(Io& io, Self& self) {
    io(self.bytes_);
    io(self.places_);
    io(self.count_);
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  struct place {
    std::uint32_t begin = 0;
    std::uint32_t size = none;
  };

  array_or_view<char> bytes_;
  array_or_view<place> places_;
  std::size_t count_ = 0;
};

}  // namespace millrace::tokenizer::detail
