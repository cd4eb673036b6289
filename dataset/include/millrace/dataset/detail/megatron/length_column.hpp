// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>

namespace millrace::dataset {

/// A view of the lengths of all sequences of an `.idx`. Refers to an array (in memory or in a
/// mapping) or, if the file cannot be mapped, to `index_columns`, which read one entry at a time.
/// Thread-safe.
class length_column {
 public:
  /// @param lengths  must outlive this
  length_column(formats::unaligned_span<std::int32_t> lengths) noexcept  // NOLINT: implicit
      : lengths_(lengths) {}

  /// @param columns  must outlive this and must not be moved
  explicit length_column(const index_columns& columns) noexcept : columns_(&columns) {}

  /// @pre sequence i exists
  /// @throws io_error, format_error  the columns are not mapped and cannot be read.
  std::int64_t operator[](std::size_t i) const {
    return columns_ == nullptr ? lengths_[i] : columns_->length(static_cast<std::int64_t>(i));
  }

 private:
  formats::unaligned_span<std::int32_t> lengths_;
  const index_columns* columns_ = nullptr;
};

}  // namespace millrace::dataset
