// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace millrace::preprocess {

/// How many of a text's first bytes expect_text() looks at.
inline constexpr std::size_t foreign_head_bytes = 262;

/// Whether a file that begins with `head` is the .idx of a dataset.
bool is_dataset_index(std::span<const std::byte> head);

/// Advice for messages about an input that belongs to a dataset.
inline constexpr std::string_view leave_out_dataset =
    "pass inputs that exclude datasets, such as 'FOLDER/*.jsonl'";

/// Recognizes inputs that are not UTF-8 lines by their first bytes: archives, Parquet, a dataset's
/// index, UTF-16 and UTF-32. An error about a bad line 1 would not explain the cause.
///
/// @param head  the first `foreign_head_bytes` of the decompressed text, or all of a shorter text
/// @throws config_error  the message begins with `name`, names the format and says what to do.
void expect_text(std::span<const std::byte> head, std::string_view name);

}  // namespace millrace::preprocess
