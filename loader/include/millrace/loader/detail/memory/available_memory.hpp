// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Locations of the kernel's status files. Tests, and containers that mount the host's files
/// elsewhere, use other paths.
struct system_files {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

/// Reads a small kernel file and strips trailing spaces and newlines. Empty if it cannot be read.
MILLRACE_EXPORT std::optional<std::string> read_system_file(const std::filesystem::path& path);

/// Bytes that this process can still allocate, and the source of that number.
struct memory_room {
  std::uint64_t bytes = 0;
  std::string by;  ///< "MemAvailable", or the control group's path
};

/// The minimum of what the machine has available (MemAvailable) and what each control group
/// (version 2) of the process leaves of its `memory.max`, including file pages that it can reclaim.
/// Empty if neither can be read. A snapshot: other processes allocate memory too.
MILLRACE_EXPORT std::optional<memory_room> available_memory(const system_files& files = {});

// ---------------------------------------------------------------------------------------------

namespace detail {

/// The number after `key` at the start of a line; empty if there is none.
MILLRACE_EXPORT std::optional<std::uint64_t> number_behind(std::string_view text,
                                                           std::string_view key);

}  // namespace detail

}  // namespace millrace::loader
