// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

/// Throws the errors about invalid entries of an `.idx`. All readers of an `.idx` use these
/// functions.
namespace millrace::dataset::detail {

/// @param offset  byte of the `.idx` at which the length begins
[[noreturn]] inline void throw_bad_length(const std::filesystem::path& idx, std::uint64_t offset,
                                          std::int64_t i, std::int64_t length) {
  throw format_error(idx, offset,
                     "length of sequence " + std::to_string(i) + " is " + std::to_string(length) +
                         ", expected 0 or more");
}

/// @param offset     byte of the `.idx` at which the pointer begins
/// @param item       bytes per token
/// @param bin_bytes  size of the `.bin`
[[noreturn]] MILLRACE_EXPORT void throw_bad_pointer(const std::filesystem::path& idx,
                                                    std::uint64_t offset, std::int64_t i,
                                                    std::int64_t length, std::int64_t pointer,
                                                    std::size_t item, std::uint64_t bin_bytes);

/// @param offset     byte of the `.idx` at which the entry with the document's first sequence
///                   begins
/// @param sequences  number of sequences in the dataset
[[noreturn]] MILLRACE_EXPORT void throw_bad_document(const std::filesystem::path& idx,
                                                     std::uint64_t offset, std::int64_t d,
                                                     std::int64_t first, std::int64_t last,
                                                     std::int64_t sequences);

}  // namespace millrace::dataset::detail
