// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::preprocess {

/// Bytes [begin, end) of one file.
struct sample_range {
  std::size_t file = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const sample_range&) const = default;
};

/// A place to sample: contiguous bytes, usually of one file, but of several if they are small.
using sample_place = std::vector<sample_range>;

/// At most `count` places of `place_bytes` each, spread evenly over the bytes of all files as if
/// concatenated, so that each byte is equally likely to be in one. The same sizes always give the
/// same places. Their order is scattered, so that the first few are spread evenly too.
std::vector<sample_place> sample_places(std::span<const std::uint64_t> file_sizes,
                                        std::size_t count, std::uint64_t place_bytes);

/// The files hit by `count` points that are spread evenly over the bytes of all files: `count`
/// indices, in the order of sample_places(). Larger files may occur more than once, empty ones
/// never.
std::vector<std::size_t> sample_files(std::span<const std::uint64_t> file_sizes, std::size_t count);

}  // namespace millrace::preprocess
