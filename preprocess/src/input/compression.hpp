// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace::preprocess {

/// What an input is compressed with. Its first bytes tell, not the file's name.
enum class compression : std::uint8_t { none, gzip, zstd, bzip2, xz };

/// How many of a file's first bytes compression_of() looks at.
inline constexpr std::size_t compression_head_bytes = 10;

/// @param head  the first `compression_head_bytes` of a file, or all that it has
compression compression_of(std::span<const std::byte> head);

/// The compression that a file with this suffix (".gz") should have; none for any other suffix.
compression compression_of_suffix(std::string_view suffix);

/// Its first bytes, for a person: "1f 8b".
std::string_view first_bytes_of(compression compressed_with);

/// @throws config_error  this build has no library for `compressed_with`; the message begins with
///                       `name`.
void expect_library_for(compression compressed_with, std::string_view name);

/// The optional libraries that this build decompresses with, for `--version`: "bzip2 1.0.8, without
/// liblzma".
std::string optional_input_parts();

}  // namespace millrace::preprocess
