// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/packed_sample.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/packing/block_layout.hpp>
#include <millrace/dataset/detail/packing/document_lengths.hpp>
#include <millrace/dataset/detail/sample/cu_seqlens.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE void append_pieces(const index_columns& columns, const packed_part& part,
                                   std::vector<piece>& pieces) {
  const document_range sequences = columns.document(part.document);
  if (sequences.size() == 1) {  // fast path for nearly all documents, without a search
    const std::int64_t length = columns.sequence_length(sequences.first);
    if (part.tokens > 0 && part.first <= length && part.tokens <= length - part.first) {
      pieces.push_back({sequences.first, part.first, part.tokens});
      return;
    }
  }
  constexpr std::int64_t most = 1024;  // a part rarely has this many sequences
  const std::int64_t left = with_lengths(columns, sequences, most, [&](const auto& length_of) {
    std::int64_t skip = part.first;
    std::int64_t missing = part.tokens;
    for (std::int64_t i = sequences.first; i < sequences.last && missing > 0; ++i) {
      const std::int64_t length = length_of(i);
      if (skip >= length) {
        skip -= length;
        continue;
      }
      const std::int64_t tokens = std::min(missing, length - skip);
      pieces.push_back({i, skip, tokens});
      missing -= tokens;
      skip = 0;
    }
    return missing;
  });
  if (left > 0) {
    throw format_error(columns.idx_path(), columns.document_offset(part.document),
                       "document " + std::to_string(part.document) + " lacks " +
                           std::to_string(left) + " tokens, expected " +
                           std::to_string(part.tokens) + " from token " +
                           std::to_string(part.first) + " on");
  }
}

MILLRACE_INLINE cu_seqlens_size fill_packed_cu_seqlens(std::span<const packed_part> parts,
                                                       std::int64_t seq_len,
                                                       std::int64_t pad_documents_to,
                                                       std::span<std::int32_t> out) {
  assert(static_cast<std::int64_t>(out.size()) == seq_len + 1);
  cu_seqlens_size size{1, 0};
  std::int64_t at = 0;
  out[0] = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t begin = at;
    at = i + 1 < parts.size() ? at + share_of(parts[i], pad_documents_to) : seq_len;
    out[static_cast<std::size_t>(size.entries++)] = static_cast<std::int32_t>(at);
    size.max_seqlen = std::max(size.max_seqlen, static_cast<std::int32_t>(at - begin));
  }
  std::fill(out.begin() + size.entries, out.end(), static_cast<std::int32_t>(seq_len));
  return size;
}

}  // namespace millrace::dataset
