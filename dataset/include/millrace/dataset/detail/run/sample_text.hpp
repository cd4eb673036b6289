// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace millrace::dataset {

/// Bytes [offset, offset + bytes) of a data file. `file` is an index into a list of files. In the
/// parts of a row, `file` equals the index of the source.
struct file_range {
  std::int64_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const file_range&, const file_range&) = default;
};

/// Tokens of a row that are contiguous in a `.bin`.
struct row_part {
  file_range from;
  /// Offset in the row, in tokens. If the last tokens of documents are only labels
  /// (`run::last_token_as_label`), this includes one token for each earlier document of the row.
  std::int64_t at = 0;

  friend bool operator==(const row_part&, const row_part&) = default;
};

/// Describes a row before its tokens are read.
struct sample_text {
  std::int64_t position = 0;
  std::int64_t source = 0;
  std::int64_t real = 0;        ///< number of tokens in all parts
  std::vector<row_part> parts;  ///< sorted by `at`; the rest of the row is padding

  /// Offsets where documents begin, followed by seq_len, as in `fill_cu_seqlens` but without
  /// repeated offsets. Empty if not requested.
  std::vector<std::int32_t> boundaries;
  /// With boundaries: whether the extra token of the row, which follows seq_len, begins a document.
  bool extra_begins = false;

  /// Packed rows only. The document before boundaries[i] ends, and its padding begins, at offset
  /// document_ends[i]. document_ends[0] is 0.
  std::vector<std::int32_t> document_ends;

  friend bool operator==(const sample_text&, const sample_text&) = default;
};

}  // namespace millrace::dataset
