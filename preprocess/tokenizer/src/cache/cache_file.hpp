// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <millrace/formats/detail/sha256.hpp>

/// Files that hold what was computed from other files, so that it need not be computed again.
///
/// A file has a header of 64 bytes, then the contents:
///
///   offset  size  field
///        0     8  "MRTOKTAB"
///        8     4  format version, 1
///       12     4  CRC-32C of the whole file, with zeros in this field
///       16     8  size of the whole file in bytes
///       24    32  key: names everything that the contents depend on
///       56     8  zeros
namespace millrace::tokenizer::detail {

using cache_key = formats::sha256::digest;

/// The contents of a cache file, in memory that no other process can change or take away.
struct cache_contents {
  std::shared_ptr<void> memory;  ///< keeps `bytes`; null if there is no valid file
  std::span<std::byte> bytes;    ///< begin at a multiple of 64
};

/// Reads a cache file. Returns null contents if the file cannot be read or must not be used:
/// somebody other than this user and root owns it or could change it, it is a symbolic link, it is
/// not as long as it says, its CRC does not match, or it has another format or key.
cache_contents read_cache_file(const std::filesystem::path& path, const cache_key& key);

/// Writes a cache file that read_cache_file() accepts. Readers see the old file or the new one,
/// also after a crash. If another process is writing the same file, leaves it to that process.
///
/// @throws io_error  the file cannot be written.
void write_cache_file(const std::filesystem::path& path, const cache_key& key,
                      std::span<const std::byte> contents);

/// Makes sure that `folder` exists and can keep cache files. Creates it, for this user alone, if
/// only its last part is missing.
///
/// @return an empty string, or the reason why it must not be used: every user of the machine may
///         replace files there.
/// @throws io_error  it cannot be created or is not a folder.
std::string fault_of_cache_folder(const std::filesystem::path& folder);

}  // namespace millrace::tokenizer::detail
