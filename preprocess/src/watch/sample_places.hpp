// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::preprocess {

/// The bytes [begin, end) of one file.
struct sample_range {
  std::size_t file = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const sample_range&) const = default;
};

/// A place to sample: contiguous bytes, usually in one file, but in several if files are small.
using sample_place = std::vector<sample_range>;

/// Returns at most `count` places of `place_bytes` each. They are spread evenly over the bytes of
/// all files, as if the files were concatenated, so that each byte is equally likely to be sampled.
/// The same sizes always give the same places. Their order is scattered, so that the first few
/// places are spread evenly too.
std::vector<sample_place> sample_places(std::span<const std::uint64_t> file_sizes,
                                        std::size_t count, std::uint64_t place_bytes);

/// Returns the indices of the files that contain `count` points spread evenly over the bytes of all
/// files. There are `count` indices, in the order of sample_places(). Larger files may occur more
/// than once; empty files never occur.
std::vector<std::size_t> sample_files(std::span<const std::uint64_t> file_sizes, std::size_t count);

}  // namespace millrace::preprocess
