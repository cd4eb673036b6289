// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace millrace::preprocess {

/// Number of bytes at the start of a text that expect_text() needs.
inline constexpr std::size_t foreign_head_bytes = 262;

/// Returns whether a file that begins with `head` is the .idx file of a dataset.
bool is_dataset_index(std::span<const std::byte> head);

/// Advice for messages about an input that belongs to a dataset.
inline constexpr std::string_view leave_out_dataset =
    "pass inputs that exclude datasets, such as 'FOLDER/*.jsonl'";

/// Throws if the first bytes show that an input is not lines of UTF-8 text, but an archive, a
/// Parquet file, the index of a dataset, or text in UTF-16 or UTF-32. Without this check, the run
/// would report line 1 as bad, which does not explain the cause.
///
/// @param head  the first `foreign_head_bytes` of the decompressed text, or all of a shorter text
/// @throws config_error  the message begins with `name`, names the format and says what to do.
void expect_text(std::span<const std::byte> head, std::string_view name);

}  // namespace millrace::preprocess
