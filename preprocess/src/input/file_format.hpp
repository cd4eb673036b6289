// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace::preprocess {

/// How an input is compressed. This is detected from its first bytes, not from the file name.
enum class compression : std::uint8_t {
  none,
  gzip,
  zstd,
  bzip2,
  xz,
  parquet,  ///< a Parquet file, whose pages may be compressed or not: see table_input
};

/// Number of bytes that compression_of() needs from the start of a file.
inline constexpr std::size_t compression_head_bytes = 10;

/// Detects the compression of a file.
///
/// @param head  the first `compression_head_bytes` of a file, or the whole file if it is shorter
compression compression_of(std::span<const std::byte> head);

/// The compression that a suffix such as ".gz" stands for, or `none` for a suffix that stands for
/// no compression.
compression compression_of_suffix(std::string_view suffix);

/// The bytes at the start of every file with this compression, for messages: "1f 8b".
std::string_view first_bytes_of(compression compressed_with);

/// Checks that this build can decompress `compressed_with`.
///
/// @throws config_error  this build has no library for `compressed_with`; the message begins with
///                       `name`.
void expect_library_for(compression compressed_with, std::string_view name);

/// The optional decompression libraries of this build, for `--version`: "bzip2 1.0.8, without
/// liblzma".
std::string optional_input_parts();

/// Number of bytes that expect_text() needs from the start of a text.
inline constexpr std::size_t foreign_head_bytes = 262;

/// Returns whether a file that begins with `head` is the .idx file of a dataset.
bool is_dataset_index(std::span<const std::byte> head);

/// Advice for messages about an input that belongs to a dataset.
inline constexpr std::string_view leave_out_dataset =
    "pass inputs that exclude datasets, such as 'FOLDER/*.jsonl'";

/// Throws if the first bytes show that an input is not UTF-8 text but an archive, a Parquet file
/// from a pipe, the index of a dataset, or text in UTF-16 or UTF-32. Without this check, the run
/// would only report line 1 as a bad record, which does not explain the cause.
///
/// @param head  the first `foreign_head_bytes` of the decompressed text, or the whole text if it is
///              shorter
/// @throws config_error  the message begins with `name`, names the format and says what to do.
void expect_text(std::span<const std::byte> head, std::string_view name);

}  // namespace millrace::preprocess
