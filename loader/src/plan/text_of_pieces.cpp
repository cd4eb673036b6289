// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/plan/text_of_pieces.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/dataset/index_errors.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/sample/gather.hpp>
#include <millrace/dataset/sample/piece.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/plan/sample_text.hpp>

namespace millrace::loader::detail {

MILLRACE_INLINE void append_part(const file_range& from, std::int64_t at, std::uint64_t item,
                                 sample_text& out) {
  if (from.bytes == 0) return;
  if (!out.parts.empty()) {
    text_part& last = out.parts.back();
    const auto tokens = static_cast<std::int64_t>(last.from.bytes / item);
    if (last.from.offset + last.from.bytes == from.offset && last.at + tokens == at) {
      last.from.bytes += from.bytes;
      return;
    }
  }
  out.parts.push_back({from, at});
}

MILLRACE_INLINE file_range range_of(const dataset::indexed_dataset& data, const dataset::piece& p,
                                    std::int64_t source) {
  const auto bytes = dataset::view_of(data, p).bytes();
  if (bytes.empty()) return {source, 0, 0};
  const auto offset = bytes.data() - data.stream().bytes().data();
  return {source, static_cast<std::uint64_t>(offset), bytes.size()};
}

[[noreturn]] MILLRACE_INLINE void throw_piece_outside(const dataset::index_columns& columns,
                                                      const dataset::piece& p,
                                                      std::int64_t length) {
  throw format_error(columns.idx_path(), columns.length_offset(p.sequence),
                     "sequence " + std::to_string(p.sequence) + " has " + std::to_string(length) +
                         " tokens, expected " + std::to_string(p.tokens) + " from token " +
                         std::to_string(p.first) +
                         " on: a sample index or a table of rows is of another dataset, remove it "
                         "to have it made again");
}

MILLRACE_INLINE file_range range_of(const dataset::index_columns& columns, const dataset::piece& p,
                                    std::int64_t source) {
  if (p.tokens == 0) return {source, 0, 0};
  const std::size_t item = formats::size_bytes(columns.type());
  const std::int64_t length = columns.length(p.sequence);
  if (p.first < 0 || p.first > length || p.tokens < 0 || p.tokens > length - p.first) {
    throw_piece_outside(columns, p, length);
  }
  const std::int64_t pointer = columns.pointer(p.sequence);
  const auto begin = static_cast<std::uint64_t>(pointer);  // of a negative one: beyond any file
  const std::uint64_t size = columns.bin_size_bytes();
  if (begin > size || static_cast<std::uint64_t>(length) * item > size - begin ||
      begin % item != 0) {
    dataset::detail::throw_bad_pointer(columns.idx_path(), columns.pointer_offset(p.sequence),
                                       p.sequence, length, pointer, item, size);
  }
  return {source, begin + static_cast<std::uint64_t>(p.first) * item,
          static_cast<std::uint64_t>(p.tokens) * item};
}

}  // namespace millrace::loader::detail
