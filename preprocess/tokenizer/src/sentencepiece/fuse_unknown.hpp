// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <millrace/tokenizer/detail/id_buffer.hpp>

namespace millrace::tokenizer::detail {

/// Replaces consecutive ids of unknown characters with one id. The ids may come from different
/// fragments.
///
/// @param begin       index of the first id to check; earlier ids are already checked
/// @param text_begin  index of the text's first id; earlier ids belong to another text
inline void fuse_unknown(id_buffer& ids, std::size_t begin, std::size_t text_begin,
                         std::int32_t unknown) {
  const std::span<std::int32_t> all = ids.ids();
  std::size_t kept = begin;
  for (std::size_t i = begin; i < all.size(); ++i) {
    const bool again = all[i] == unknown && kept > text_begin && all[kept - 1] == unknown;
    all[kept] = all[i];
    kept += again ? 0 : 1;
  }
  ids.truncate(kept);
}

}  // namespace millrace::tokenizer::detail
