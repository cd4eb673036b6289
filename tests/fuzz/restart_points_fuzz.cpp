// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "input/byte_source.hpp"
#include "support/read_source.hpp"

namespace {

using namespace millrace;
using preprocess::restart_point;

// Returns the text from `from` to the first point in `later`, or to the end of the file if `later`
// is empty. Returns `std::nullopt` if the file is refused.
std::optional<std::string> read(const preprocess::input_file& file, restart_point from,
                                std::span<const restart_point> later) try {
  const std::uint64_t size =
      later.empty() ? UINT64_MAX : later.front().text_offset - from.text_offset;
  return test::read_source(*preprocess::open_input_at(file, from, later), size);
} catch (const format_error&) {
  return std::nullopt;
} catch (const config_error&) {  // a zstd frame whose window is too large
  return std::nullopt;
}

}  // namespace

/// Decompression can begin at each restart point of a file. For any compressed file, the pieces of
/// text between the restart points must join to the whole text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  preprocess::input_file file;
  file.most_window_bytes = std::uint64_t{128} << 20;
  file.compressed_with = preprocess::compression_of(bytes);
  if (file.compressed_with != preprocess::compression::gzip &&
      file.compressed_with != preprocess::compression::zstd) {
    return 0;
  }
  const io::unique_fd memory(::memfd_create("input", MFD_CLOEXEC));
  file.path = "/proc/self/fd/" + std::to_string(memory.get());
  io::pwrite_all(memory, bytes, 0, file.path);
  const auto points = preprocess::find_restart_points(file);
  if (points.empty()) return 0;
  if (points.back().compressed_offset != size) std::abort();
  std::optional<std::string> pieces = std::string();
  for (std::size_t k = 0; pieces && k + 1 < points.size(); ++k) {
    const auto piece = read(file, points[k], std::span(points).subspan(k + 1));
    pieces = piece ? std::optional(*pieces + *piece) : std::nullopt;
  }
  if (pieces != read(file, {}, {})) std::abort();
  return 0;
}
