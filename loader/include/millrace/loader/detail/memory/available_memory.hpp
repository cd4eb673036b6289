// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Locations of the kernel's status files. Other paths are for tests and for containers that mount
/// the host's files elsewhere.
struct system_files {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

/// Reads a small kernel file and strips trailing whitespace. Returns nothing if the file cannot be
/// read.
MILLRACE_EXPORT std::optional<std::string> read_system_file(const std::filesystem::path& path);

/// Number of bytes that this process can still allocate, and where the number comes from.
struct memory_room {
  std::uint64_t bytes = 0;
  std::string by;  ///< "MemAvailable", or the control group's path
};

/// The memory that this process can still allocate, which is the smallest of several limits. One
/// limit is the machine's available memory (`MemAvailable`). Each control group (version 2) of the
/// process adds a limit: the unused part of its `memory.max`, in which file pages that the kernel
/// can reclaim count as unused. Empty if no limit can be read. The result is a snapshot, because
/// other processes allocate memory too.
MILLRACE_EXPORT std::optional<memory_room> available_memory(const system_files& files = {});

// ---------------------------------------------------------------------------------------------

namespace detail {

/// The number on the first line that starts with `key`, or nothing if there is no such number.
MILLRACE_EXPORT std::optional<std::uint64_t> number_behind(std::string_view text,
                                                           std::string_view key);

}  // namespace detail

}  // namespace millrace::loader
