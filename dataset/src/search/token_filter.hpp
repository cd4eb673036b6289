// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <millrace/formats/token_texts.hpp>

#include "block_search.hpp"

namespace millrace::dataset::detail {

/// Tells which tokens can be a part of an occurrence of a query, so that the rest of a dataset need
/// not be decoded.
///
/// An occurrence of a query contains one token with the query's byte number `anchor`. The text of
/// that token agrees with the query wherever they overlap, so most tokens can be ruled out. The
/// anchor is the byte for which the remaining tokens are the least frequent.
class token_filter {
 public:
  /// Lets all tokens pass; every anchor is 0.
  explicit token_filter(std::size_t queries) : anchors_(queries, 0) {}
  token_filter(const formats::token_texts& texts, const std::vector<std::string>& queries,
               const token_sample& sample);

  /// False if so many tokens pass that it is faster to decode everything.
  bool is_useful() const noexcept { return !flags_.empty(); }
  std::size_t anchor(std::int64_t query) const noexcept {
    return anchors_[static_cast<std::size_t>(query)];
  }

  /// For scan_flags().
  /// @pre is_useful()
  template <class T>
  std::vector<std::uint8_t> flags_of(const formats::token_texts& texts) const {
    if constexpr (sizeof(T) > 2) {
      return flags_;
    } else {
      std::vector<std::uint8_t> flags(std::size_t{1} << (8 * sizeof(T)));
      for (std::size_t id = 0; id < flags.size(); ++id) {
        flags[id] = flags_[texts.index_of(static_cast<std::int64_t>(static_cast<T>(id)))];
      }
      return flags;
    }
  }

 private:
  std::vector<std::size_t> anchors_;
  std::vector<std::uint8_t> flags_;  // by index in the token_texts
};

}  // namespace millrace::dataset::detail
