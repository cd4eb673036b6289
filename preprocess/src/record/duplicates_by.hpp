// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>

namespace millrace::preprocess {

/// What `--drop-duplicates` compares: a document is dropped if it equals an earlier one in this.
enum class duplicates_by : std::uint8_t {
  ids,   ///< the token ids
  text,  ///< the texts, as given to the tokenizer
};

/// The usual memory for finding duplicates: `--memory`, in bytes.
inline constexpr std::uint64_t default_duplicates_bytes = std::uint64_t{1} << 30;

/// Returns the bytes of `--memory MB`.
///
/// @throws command::usage_error  the value is out of range.
inline std::uint64_t duplicates_bytes_of(std::int64_t megabytes) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  if (megabytes < 1 || megabytes > most) {
    throw command::usage_error(fmt::format("--memory {}: expected 1 to {} MB", megabytes, most));
  }
  return static_cast<std::uint64_t>(megabytes) << 20;
}

constexpr const char* name_of(duplicates_by by) noexcept {
  return by == duplicates_by::ids ? "ids" : "text";
}

}  // namespace millrace::preprocess
