// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/document_lengths.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>

namespace millrace::dataset {

MILLRACE_INLINE void document_lengths(const index_columns& columns, std::int64_t first,
                                      std::int64_t last, std::vector<std::int64_t>& out) {
  out.clear();
  if (first == last) return;
  const auto count = static_cast<std::size_t>(last - first);
  std::vector<std::byte> scratch;
  const auto starts = columns.document_starts(first, last - first + 1, scratch);
  // If the first and the last start are valid and the starts ascend, all starts are valid.
  // Otherwise, check the documents one by one.
  bool good = 0 <= starts[0] && starts[count] <= columns.sequence_count();
  for (std::size_t d = 0; d < count; ++d) good &= starts[d] <= starts[d + 1];
  columns.check_there();
  for (std::size_t d = 0; !good && d < count; ++d) {
    columns.check_document(first + static_cast<std::int64_t>(d), {starts[d], starts[d + 1]});
  }
  constexpr std::int64_t most = 1 << 16;
  with_lengths(columns, {starts[0], starts[count]}, most, [&](const auto& length_of) {
    out.reserve(count);
    for (std::size_t d = 0; d < count; ++d) {
      std::int64_t tokens = 0;
      for (std::int64_t i = starts[d]; i < starts[d + 1]; ++i) tokens += length_of(i);
      out.push_back(tokens);
    }
  });
  columns.check_there();  // because the starts were read again
}

}  // namespace millrace::dataset
