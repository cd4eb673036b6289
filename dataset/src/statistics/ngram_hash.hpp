// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "documents.hpp"

namespace millrace::dataset::detail {

/// Calls visit(hash, offset) for each n-gram of a document. The hash depends on the ids, not on
/// their type. Takes the same time for any n: the hash of the next n-gram follows from this one.
///
/// @pre n >= 1
template <class T, class Visit>
void for_each_ngram(std::span<const T> ids, std::int64_t n, Visit&& visit) {
  const auto size = static_cast<std::size_t>(n);
  if (ids.size() < size) return;
  constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;  // odd
  std::uint64_t leaving = 1;                            // factor^n
  for (std::int64_t i = 0; i < n; ++i) leaving *= factor;
  const auto value = [&](std::size_t i) {
    return mixed(static_cast<std::uint64_t>(static_cast<std::int64_t>(ids[i])) + 1);
  };
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 1 < size; ++i) sum = sum * factor + value(i);
  for (std::size_t i = size - 1; i < ids.size(); ++i) {
    sum = sum * factor + value(i);
    if (i >= size) sum -= value(i - size) * leaving;
    const std::uint64_t hash = (sum ^ (sum >> 32)) * 0xd6e8feb86659fd93;
    visit(hash ^ (hash >> 29), i + 1 - size);
  }
}

}  // namespace millrace::dataset::detail
