// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace::preprocess {

/// How the bytes of an input are packed, told by their first bytes, not by the file's name.
enum class compression : std::uint8_t { none, gzip, zstd, bzip2, xz };

/// As many of a file's first bytes as packing_of() looks at.
inline constexpr std::size_t packing_head_bytes = 10;

/// @param head  the first `packing_head_bytes` of a file, or all that it has
compression packing_of(std::span<const std::byte> head);

/// The packing that a file with this suffix (".gz") should have; none for any other suffix.
compression packing_of_suffix(std::string_view suffix);

/// Its first bytes, for a person: "1f 8b".
std::string_view first_bytes_of(compression packing);

/// @throws config_error  this build has no library for `packing`; the sentence begins with `name`.
void expect_library_for(compression packing, std::string_view name);

/// What this build can unpack besides gzip and zstd, for `--version`: "bzip2 1.0.8, without xz".
std::string optional_input_parts();

}  // namespace millrace::preprocess
