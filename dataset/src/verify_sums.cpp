// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/verify_sums.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/sum_check.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::dataset {

namespace detail {

/// @param size    size of the file when the checksums were computed, in bytes
/// @param blocks  checksums of the file's blocks
MILLRACE_INLINE void verify_blocks(const std::filesystem::path& path, std::uint64_t size,
                                   formats::unaligned_span<std::uint32_t> blocks) {
  const io::unique_fd fd = io::open_read_only(path, O_NONBLOCK);
  const std::uint64_t found = io::regular_file_size(fd, path);
  if (found != size) {
    throw format_error(path, std::min(found, size),
                       "the file has " + std::to_string(found) + " bytes, but had " +
                           std::to_string(size) + " when its checksums were written");
  }
  std::vector<std::byte> buffer(formats::sum_block_bytes);
  formats::sum_check check(blocks, size);
  try {
    for (std::uint64_t begin = 0; begin < size; begin += buffer.size()) {
      const auto block = std::span(buffer).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size - begin)));
      const std::size_t read = io::pread_some(fd, block, begin, path);
      if (read < block.size()) throw format_error(begin + read, "the file became shorter");
      check.add(block);
    }
    check.finish();
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

}  // namespace detail

MILLRACE_INLINE std::optional<std::string> verify_sums(const std::filesystem::path& prefix) {
  const auto path = sidecar_paths(prefix).sum;
  const auto file = map_sidecar(path);
  if (!file) return std::nullopt;
  const formats::sum_view sum = [&] {
    try {
      return formats::parse_sum(file->bytes());
    } catch (const format_error& e) {
      throw e.in(path);
    }
  }();
  std::filesystem::path idx = prefix;
  detail::verify_blocks(idx += ".idx", sum.idx_bytes, sum.idx_blocks);
  std::filesystem::path bin = prefix;
  detail::verify_blocks(bin += ".bin", sum.bin_bytes, sum.bin_blocks);
  return formats::root_hex(sum);
}

}  // namespace millrace::dataset
