// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace millrace::preprocess {

/// Bytes of memory that this process may fill: those of the machine (`MemTotal`), and no more than
/// its control groups allow (`memory.max`, or `memory.limit_in_bytes` of version 1). Nothing where
/// neither can be read.
///
/// @param root  where `proc` and `sys` are
std::optional<std::uint64_t> usable_memory(const std::filesystem::path& root = "/");

/// The default of `--zstd-memory`: the largest window that libzstd decompresses, but no more than
/// three quarters of the usable memory, since a run needs some for its tokenizer as well.
///
/// @param processes  that share the memory, each with a window of its own
std::uint64_t default_zstd_window_bytes(int processes = 1, const std::filesystem::path& root = "/");

}  // namespace millrace::preprocess
