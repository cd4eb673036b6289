// SPDX-License-Identifier: Apache-2.0
#include "input/restart_points.hpp"

#include <fcntl.h>

#include <optional>

#include <millrace/io/file_ops.hpp>

#include "input/gzip_members.hpp"
#include "input/zstd_frames.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::uint64_t least_text_bytes = std::uint64_t{1} << 20;

// Walks over the units (gzip members or zstd frames) of a file. `size_of(offset)` returns the sizes
// of the unit at `offset`. If `size_of` returns nothing, the walk fails and returns no points.
template <class SizeOf>
std::vector<restart_point> walk(std::uint64_t file_size, SizeOf size_of) {
  std::vector<restart_point> points = {{0, 0}};
  restart_point at;
  while (at.compressed_offset != file_size) {
    const std::optional<unit_size> unit = size_of(at.compressed_offset);
    if (!unit || unit->compressed_bytes > file_size - at.compressed_offset ||
        unit->text_bytes > UINT64_MAX - at.text_offset) {
      return {};
    }
    if (at.text_offset - points.back().text_offset >= least_text_bytes) points.push_back(at);
    at.compressed_offset += unit->compressed_bytes;
    at.text_offset += unit->text_bytes;
  }
  // If the units after the last point have no text, merge them into the piece before that point.
  if (points.size() > 1 && at.text_offset == points.back().text_offset) points.pop_back();
  if (points.size() == 1) return {};
  points.push_back(at);
  return points;
}

}  // namespace

std::vector<restart_point> find_restart_points(const input_file& file) {
  if (file.compressed_with != compression::gzip && file.compressed_with != compression::zstd)
    return {};
  const io::unique_fd fd = io::open_read_only(file.path, O_NONBLOCK);
  const std::uint64_t size = io::regular_file_size(fd, file.path);
  // Usually, only the headers of the units are read. Without this hint, the kernel's read-ahead
  // would read the whole file.
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  if (file.compressed_with == compression::zstd) {
    zstd_frames frames(fd, file.path);
    return walk(size, [&](std::uint64_t at) { return frames.size_at(at); });
  }
  gzip_members members(fd, size, file.path);
  return walk(size, [&](std::uint64_t at) { return members.size_at(at); });
}

}  // namespace millrace::preprocess
