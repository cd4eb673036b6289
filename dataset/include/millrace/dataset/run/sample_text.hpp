// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace millrace::dataset {

/// Bytes [offset, offset + bytes) of a data file. `file` is its place in a list: of a row, the
/// number of the source.
struct file_range {
  std::int64_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const file_range&, const file_range&) = default;
};

/// Tokens of a row that lie side by side in a `.bin`.
struct text_part {
  file_range from;
  std::int64_t at = 0;  ///< the token of the row at which they begin

  friend bool operator==(const text_part&, const text_part&) = default;
};

/// What a row is made of: all that is known of it before its tokens are read.
struct sample_text {
  std::int64_t position = 0;
  std::int64_t source = 0;
  std::int64_t real = 0;         ///< tokens of all parts
  std::vector<text_part> parts;  ///< by `at`; what is between and after them is padding

  /// Where its documents begin, and seq_len, as `fill_cu_seqlens` has them, each once; empty where
  /// nobody asked for them.
  std::vector<std::int32_t> boundaries;

  /// Packed rows only: document_ends[i] is where the tokens of the document before boundaries[i]
  /// end and its padding begins; [0] is 0.
  std::vector<std::int32_t> document_ends;

  friend bool operator==(const sample_text&, const sample_text&) = default;
};

}  // namespace millrace::dataset
