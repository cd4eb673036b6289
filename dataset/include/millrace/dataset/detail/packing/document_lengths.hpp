// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>

namespace millrace::dataset {

/// Calls `use(length_of)`, where `length_of(i)` returns the checked length of sequence i of the
/// range. `use` must call `length_of` with ascending i. If the index is not mapped, lengths are
/// read in batches.
///
/// @param most  largest number of lengths per read
/// @pre `of` is a range of the dataset's sequences
/// @return the result of `use`
/// @throws format_error  a length is negative, or the file was truncated
/// @throws io_error      the index is not mapped, and a read failed
/// @throws               what `use` throws
template <class Use>
auto with_lengths(const index_columns& columns, const document_range& of, std::int64_t most,
                  const Use& use);

/// Replaces `out` with the lengths of documents [first, last), in tokens. If the index is not
/// mapped, this takes two reads, or more if documents have many sequences.
///
/// @pre 0 <= first <= last <= columns.document_count()
/// @throws format_error, io_error  as `index_columns::document` and `sequence_length`
MILLRACE_EXPORT void document_lengths(const index_columns& columns, std::int64_t first,
                                      std::int64_t last, std::vector<std::int64_t>& out);

// ---------------------------------------------------------------------------------------------

template <class Use>
auto with_lengths(const index_columns& columns, const document_range& of, std::int64_t most,
                  const Use& use) {
  std::vector<std::byte> scratch;
  if (columns.is_mapped()) {
    const auto lengths = columns.lengths(of.first, of.size(), scratch);
    return use([&columns, lengths, first = of.first](std::int64_t i) -> std::int64_t {
      const std::int64_t length = lengths[static_cast<std::size_t>(i - first)];
      columns.check_there();
      columns.check_length(i, length);
      return length;
    });
  }
  formats::unaligned_span<std::int32_t> here;
  std::int64_t first = of.first;  // first sequence in `here`
  return use([&](std::int64_t i) -> std::int64_t {
    assert(first <= i && i < of.last);
    if (i - first >= std::ssize(here)) {
      first = i;
      here = columns.lengths(first, std::min(most, of.last - first), scratch);
    }
    const std::int64_t length = here[static_cast<std::size_t>(i - first)];
    columns.check_length(i, length);
    return length;
  });
}

}  // namespace millrace::dataset
