// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "record/record_parser.hpp"

namespace millrace::preprocess {

/// A record that was dropped, and why: what P.bad keeps of it.
struct bad_record {
  std::string_view file;
  std::int64_t line = 0;             ///< from 1
  std::uint64_t byte = 0;            ///< first of the record, in the decompressed file
  std::uint64_t size = 0;            ///< bytes of the record
  const record_fault& fault;         ///< its offset is in the record
  const std::string* raw = nullptr;  ///< the record, or null: too long to be kept
  /// Where lines count from, in the decompressed file: not 0 if a task began within.
  std::uint64_t from_byte = 0;
};

/// One line of P.bad, as formats/spec/bad.md has it.
std::string bad_record_line(const bad_record& record);

}  // namespace millrace::preprocess
