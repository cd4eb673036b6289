// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/verify_tokens.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include <millrace/dataset/indexed_dataset.hpp>

namespace millrace::dataset {

namespace detail {

/// Index of the first token outside 0 .. vocab_size - 1; tokens.size() if there is none.
template <class T>
std::int64_t find_outside(std::span<const T> tokens, std::int64_t vocab_size) {
  // As an unsigned number, a negative id is larger than any valid id. So one comparison finds
  // negative ids and ids that are too large.
  using id = std::make_unsigned_t<T>;
  const auto limit = std::min(static_cast<std::uint64_t>(vocab_size),
                              static_cast<std::uint64_t>(std::numeric_limits<T>::max()) + 1);
  const auto outside = [limit](T token) { return static_cast<id>(token) >= limit; };
  // Compute the maximum of a block first, in the type of the tokens, so that it vectorizes.
  constexpr std::size_t block = 4096;
  for (std::size_t first = 0; first < tokens.size(); first += block) {
    const auto part = tokens.subspan(first, std::min(block, tokens.size() - first));
    id largest = 0;
    for (const T token : part) largest = std::max(largest, static_cast<id>(token));
    if (largest < limit) continue;
    const auto found = std::ranges::find_if(part, outside);
    return static_cast<std::int64_t>(first) + (found - part.begin());
  }
  return static_cast<std::int64_t>(tokens.size());
}

/// Returns the sequence that contains byte `offset_bytes` of the `.bin`: the last sequence that
/// starts at or before this byte. Empty sequences that start at the same byte precede that
/// sequence.
MILLRACE_INLINE std::int64_t sequence_at(const formats::mmidx_view& idx,
                                         std::int64_t offset_bytes) {
  std::int64_t low = 0;
  std::int64_t high = idx.sequence_count();
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (idx.pointers[static_cast<std::size_t>(middle)] <= offset_bytes ? low : high) = middle;
  }
  return low;
}

}  // namespace detail

MILLRACE_INLINE void verify_tokens(const indexed_dataset& data, std::int64_t vocab_size) {
  assert(vocab_size > 0);
  const token_view stream = data.stream();
  const std::int64_t found = formats::with_type(data.type(), [&]<class T>(T) -> std::int64_t {
    if constexpr (std::is_floating_point_v<T>) {
      throw config_error(data.prefix().string() + ": tokens are " +
                         std::string(formats::name(data.type())) +
                         ", which cannot be ids of a vocabulary");
    } else {
      return detail::find_outside(stream.as<T>(), vocab_size);
    }
  });
  if (found == stream.size()) return;
  const auto item = static_cast<std::int64_t>(formats::size_bytes(data.type()));
  const std::int64_t sequence = detail::sequence_at(data.index(), found * item);
  const std::int64_t start = data.index().pointers[static_cast<std::size_t>(sequence)] / item;
  throw format_error(data.bin_path(), static_cast<std::uint64_t>(found * item),
                     "token " + std::to_string(found - start) + " of sequence " +
                         std::to_string(sequence) + " is " + std::to_string(stream[found]) +
                         ", expected 0 to " + std::to_string(vocab_size - 1));
}

}  // namespace millrace::dataset
