// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "record/record_parser.hpp"

namespace millrace::preprocess {

/// A dropped record and the reason why it was dropped, to be stored in P.bad.
struct bad_record {
  std::string_view file;
  std::int64_t line = 0;             ///< line number, starting at 1
  bool has_rows = false;             ///< the file is a table, so `begin` and `from` are rows
  std::uint64_t begin = 0;           ///< offset of the record in the decompressed file
  std::uint64_t size = 0;            ///< size of the record in bytes
  const record_fault& fault;         ///< `fault.offset_bytes` is relative to the record
  const std::string* raw = nullptr;  ///< the record, or null if it is too long to store
  /// Offset in the decompressed file at which line 1 begins. It is 0 unless a task begins inside
  /// the file; lines are then counted from there.
  std::uint64_t from = 0;
};

/// Returns the line of P.bad for a record, as formats/spec/bad.md defines it.
std::string bad_record_line(const bad_record& record);

}  // namespace millrace::preprocess
