// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/gpt_index.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/formats/detail/unaligned_span.hpp>

namespace millrace::dataset {

MILLRACE_INLINE std::int64_t count_tokens(formats::unaligned_span<std::int32_t> lengths,
                                          sequence_range sequences, std::uint64_t lengths_offset) {
  std::int64_t tokens = 0;
  std::int32_t least = 0;
  const auto first = static_cast<std::size_t>(sequences.first);
  const auto last = static_cast<std::size_t>(sequences.last);
  for (std::size_t i = first; i < last; ++i) {
    tokens += lengths[i];
    least = std::min(least, lengths[i]);
  }
  for (std::size_t i = first; least < 0 && i < last; ++i) {
    if (lengths[i] >= 0) continue;
    throw format_error(lengths_offset + 4 * i, "length of sequence " + std::to_string(i) + " is " +
                                                   std::to_string(lengths[i]) +
                                                   ", expected 0 or more");
  }
  return tokens;
}

}  // namespace millrace::dataset
