// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace millrace::preprocess {

/// As many of a text's first bytes as expect_text() looks at.
inline constexpr std::size_t foreign_head_bytes = 262;

/// Whether a file that begins so is a dataset's .idx.
bool is_dataset_index(std::span<const std::byte> head);

/// What to do about a file of a dataset among the inputs.
inline constexpr std::string_view leave_out_dataset =
    "pass inputs that exclude datasets, such as 'FOLDER/*.jsonl'";

/// Tells what is no text of UTF-8 lines by its first bytes, where what it is would be lost on who
/// reads that line 1 is bad: archives, Parquet, a dataset's index, UTF-16 and UTF-32.
///
/// @param head  of the decompressed text: the first `foreign_head_bytes`, or what there is of them
/// @throws config_error  what it is, and what to do; the sentence begins with `name`.
void expect_text(std::span<const std::byte> head, std::string_view name);

}  // namespace millrace::preprocess
