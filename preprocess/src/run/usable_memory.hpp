// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace millrace::preprocess {

/// Memory that this process can use, in bytes: that of the machine (`MemTotal`), limited by its
/// control groups (`memory.max`, or `memory.limit_in_bytes` in version 1). Nothing if neither can
/// be read.
///
/// @param root  where `proc` and `sys` are
std::optional<std::uint64_t> usable_memory(const std::filesystem::path& root = "/");

/// The default of `--zstd-memory`: the largest window that libzstd decompresses, but at most 3/4 of
/// the usable memory, because a run also needs memory for its tokenizer.
///
/// @param processes  number of processes that share the memory, each with its own window
std::uint64_t default_zstd_window_bytes(int processes = 1, const std::filesystem::path& root = "/");

}  // namespace millrace::preprocess
