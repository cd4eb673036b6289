// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include <millrace/io/atomic_file.hpp>

namespace millrace::preprocess {

/// A file of the whole, and how much is still to come: known before anything is copied.
struct known_file {
  io::atomic_file* file;
  std::uint64_t more_bytes;
};

/// Sets aside on the disk what the files will take, so that a full one is known before the first
/// byte is copied, and not hours later. Does nothing on a file system that cannot.
///
/// @param prefix  of the whole, for the sentence
/// @throws error     the disk, or a quota, has less room
/// @throws io_error  another refusal
void reserve_whole(const std::filesystem::path& prefix, std::span<const known_file> files);

}  // namespace millrace::preprocess
