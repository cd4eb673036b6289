// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/system_files.hpp>

namespace millrace::loader {

/// Bytes that this process may still take, and who says so.
struct memory_room {
  std::uint64_t bytes = 0;
  std::string by;  ///< "MemAvailable", or the control group's path
};

/// The least of what the machine has (MemAvailable) and of what the control groups (version 2) that
/// the process is in leave of their `memory.max`, with the pages of files that they can let go of.
/// Nothing where neither can be read. A moment's truth: others take memory too.
MILLRACE_EXPORT std::optional<memory_room> available_memory(const system_files& files = {});

// ---------------------------------------------------------------------------------------------

namespace detail {

/// The number behind `key` at the start of a line; nothing if there is none.
MILLRACE_EXPORT std::optional<std::uint64_t> number_behind(std::string_view text,
                                                           std::string_view key);

}  // namespace detail

}  // namespace millrace::loader
