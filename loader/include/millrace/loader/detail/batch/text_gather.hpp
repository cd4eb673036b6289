// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::loader::detail {

/// The token width of slots that hold tokens of all these types: `u16` if each type is uint16, else
/// `i32`.
inline token_width width_of(std::span<const formats::dtype> types) {
  const bool narrow =
      std::ranges::all_of(types, [](formats::dtype t) { return t == formats::dtype::uint16; });
  return narrow ? token_width::u16 : token_width::i32;
}

/// Reads the text of a micro-batch into its slot. If the dataset has the slot's token type, the
/// text is read directly into the slot; otherwise it is read into a buffer and converted. Used by
/// one thread. Once the largest batch has been read, no call allocates memory.
class MILLRACE_EXPORT text_gather {
 public:
  /// @param files  indexed by source, as is `types`
  text_gather(std::vector<data_file> files, std::vector<formats::dtype> types)
      : files_(std::move(files)), types_(std::move(types)) {}

  /// Fills the slot's arrays `text`, `real`, `boundaries` and `document_ends`.
  ///
  /// @param rows  as many rows as the slot has
  /// @throws io_error      see `range_reader::gather`
  /// @throws format_error  a 64-bit token does not fit in 32 bits, or a planned row is longer than
  ///                       the slot's rows
  /// @return number of bytes read
  std::int64_t fill(std::span<const dataset::sample_text> rows, range_reader& reader,
                    batch_slot& slot);

  /// The read requests of the last `fill`, ordered by row, then by part of the row. The memory of
  /// each request holds the unconverted bytes of the file.
  std::span<const read_request> requests() const noexcept { return requests_; }

 private:
  struct detour {
    std::size_t from;  // byte offset in scratch_
    std::int32_t* to;
    std::size_t tokens;
    const dataset::row_part* part;
  };

  void plan(std::span<const dataset::sample_text> rows, batch_slot& slot);
  void check_room(const dataset::sample_text& row, const slot_layout& layout) const;
  void convert(const detour& d) const;
  static void pad(std::span<const dataset::sample_text> rows, std::span<const formats::dtype> types,
                  batch_slot& slot);
  static void put_boundaries(std::span<const dataset::sample_text> rows, batch_slot& slot);

  std::vector<data_file> files_;
  std::vector<formats::dtype> types_;
  std::vector<read_request> requests_;
  std::vector<detour> detours_;
  std::vector<std::byte> scratch_;
};

}  // namespace millrace::loader::detail
