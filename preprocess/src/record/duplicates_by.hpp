// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::preprocess {

/// What `--drop-duplicates` compares: a document is dropped if it equals an earlier one in this.
enum class duplicates_by : std::uint8_t {
  ids,   ///< the token ids
  text,  ///< the texts, as given to the tokenizer
};

/// The usual memory for finding duplicates: `--memory`, in bytes.
inline constexpr std::uint64_t default_duplicates_bytes = std::uint64_t{1} << 30;

inline constexpr std::int64_t most_duplicates_megabytes = std::int64_t{1} << 20;

constexpr const char* name_of(duplicates_by by) noexcept {
  return by == duplicates_by::ids ? "ids" : "text";
}

}  // namespace millrace::preprocess
