// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/atomic_file.hpp>

namespace millrace::preprocess {

inline constexpr std::size_t read_back_bytes = std::size_t{1} << 20;

/// Reads back the bytes [begin, end) of `file`; calls `take(bytes)` for each chunk of up to 1 MiB.
///
/// @throws io_error  the bytes cannot be read, or the file has become shorter.
template <class Take>
void read_back(const io::atomic_file& file, std::uint64_t begin, std::uint64_t end, Take&& take) {
  std::vector<std::byte> chunk(std::min<std::uint64_t>(read_back_bytes, end - begin));
  while (begin < end) {
    const auto part = std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), end - begin));
    if (io::pread_some(file.fd(), part, begin, file.partial_path()) != part.size()) {
      throw io_error(file.partial_path(), "read back (did another process change it?)", EIO);
    }
    take(std::span<const std::byte>(part));
    begin += part.size();
  }
}

/// Truncates a file of a stopped run to its first `size` bytes, which that run had made durable.
/// Everything that the run wrote after these bytes is dropped.
///
/// @throws config_error  the file has fewer than `size` bytes.
inline void cut_back(io::atomic_file& file, std::uint64_t size) {
  if (file.size_bytes() < size) {
    throw config_error(
        fmt::format("--resume: {} has {} bytes, but had {} when the run stopped; pass --overwrite "
                    "to start again",
                    file.partial_path().string(), file.size_bytes(), size));
  }
  file.resize(size);
}

}  // namespace millrace::preprocess
