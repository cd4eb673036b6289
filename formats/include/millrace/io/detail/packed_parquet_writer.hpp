// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <millrace/formats/detail/packed_parquet.hpp>
#include <millrace/io/atomic_file.hpp>

namespace millrace::io {

/// Writes packed rows to a Parquet file (formats/spec/packed_parquet.md) while they arrive:
///
///     packed_parquet_writer writer(atomic_file("packed.idx.parquet"));
///     writer.add_row(ids, loss_mask, starts);
///     writer.finish();
///     writer.file().commit();
///
/// Memory, bytes and rules of rows are those of `packed_parquet_encoder`. Not thread-safe.
class packed_parquet_writer {
 public:
  /// @throws config_error  as `packed_parquet_encoder`
  explicit packed_parquet_writer(atomic_file file, formats::packed_parquet_options options = {})
      : file_(std::move(file)), encoder_(std::move(options)) {}

  /// Appends a row, see `packed_parquet_encoder::add_row`.
  ///
  /// @throws error  the row breaks a rule; the next row may still be added
  /// @throws io_error  the file cannot be written; do not use this object any longer
  void add_row(std::span<const std::int32_t> ids, std::span<const std::uint8_t> loss_mask,
               std::span<const std::int32_t> starts) {
    encoder_.add_row(ids, loss_mask, starts, part_);
    flush();
  }

  /// Completes the file, under its partial name. Call `file().commit()` next.
  ///
  /// @throws io_error  as `add_row`
  void finish() {
    encoder_.finish(part_);
    flush();
  }

  std::int64_t row_count() const noexcept { return encoder_.row_count(); }
  atomic_file& file() noexcept { return file_; }

 private:
  void flush() {
    if (part_.empty()) return;
    file_.append(part_);
    part_.clear();
  }

  atomic_file file_;
  formats::packed_parquet_encoder encoder_;
  std::vector<std::byte> part_;  // encoded, not written yet
};

}  // namespace millrace::io
