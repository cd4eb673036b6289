// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/sample/pad_id.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

namespace millrace::dataset {

MILLRACE_INLINE std::int64_t pad_id(std::optional<std::int64_t> pad,
                                    std::span<const std::int64_t> special_tokens,
                                    bool allow_ambiguous) noexcept {
  if (!pad) return -1;
  const bool ambiguous = std::ranges::find(special_tokens, *pad) != special_tokens.end();
  return ambiguous && !allow_ambiguous ? -1 : *pad;
}

}  // namespace millrace::dataset
