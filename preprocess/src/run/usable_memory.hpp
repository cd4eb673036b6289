// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace millrace::preprocess {

/// Returns the memory that this process can use, in bytes: the memory of the machine (`MemTotal`),
/// limited by the process's control groups (`memory.max`, or `memory.limit_in_bytes` in version 1).
/// Returns nothing if neither can be read.
///
/// @param root  the folder that contains `proc` and `sys`
std::optional<std::uint64_t> usable_memory(const std::filesystem::path& root = "/");

/// The default of `--zstd-memory`: the largest window that libzstd decompresses, but at most 3/4 of
/// this process's share of the usable memory, because a run also needs memory for its tokenizer.
/// The result is at least least_zstd_window_bytes.
///
/// @param processes  number of processes that share the memory; each has its own window
std::uint64_t default_zstd_window_bytes(int processes = 1, const std::filesystem::path& root = "/");

}  // namespace millrace::preprocess
