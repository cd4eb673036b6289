// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/verify.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_ops.hpp>

#include "block_checksums.hpp"

namespace millrace::dataset {

namespace detail {

/// @param size    size of the file when the checksums were computed, in bytes
/// @param blocks  checksums of the file's blocks
MILLRACE_INLINE void verify_blocks(const std::filesystem::path& path, std::uint64_t size,
                                   formats::unaligned_span<std::uint32_t> blocks,
                                   const verify_options& options, std::uint64_t& done) {
  const io::unique_fd fd = io::open_read_only(path, O_NONBLOCK);
  const std::uint64_t found = io::regular_file_size(fd, path);
  if (found != size) {
    throw format_error(path, std::min(found, size),
                       "the file has " + std::to_string(found) + " bytes, expected " +
                           std::to_string(size) + ", as when its checksums were written");
  }
  checksum_blocks(
      path, fd, size, options, done,
      [&](std::size_t block, std::uint64_t begin, std::uint64_t end, std::uint32_t crc) {
        const std::uint32_t wanted = blocks[block];
        if (crc == wanted) return;
        throw format_error(path, begin,
                           "the " + std::to_string(end - begin) + " bytes up to byte " +
                               std::to_string(end) +
                               " differ from those that were written: their checksum is " +
                               formats::hex(crc) + ", expected " + formats::hex(wanted));
      });
}

/// Index of the first token outside 0 .. vocab_size - 1; tokens.size() if there is none.
template <class T>
std::int64_t find_outside(std::span<const T> tokens, std::int64_t vocab_size) {
  // As an unsigned number, a negative id is larger than any valid id. So one comparison finds
  // negative ids and ids that are too large.
  using id = std::make_unsigned_t<T>;
  const auto limit = std::min(static_cast<std::uint64_t>(vocab_size),
                              static_cast<std::uint64_t>(std::numeric_limits<T>::max()) + 1);
  const auto outside = [limit](T token) { return static_cast<id>(token) >= limit; };
  // Compute the maximum of a block first, in the type of the tokens, so that it vectorizes.
  constexpr std::size_t block = 4096;
  for (std::size_t first = 0; first < tokens.size(); first += block) {
    const auto part = tokens.subspan(first, std::min(block, tokens.size() - first));
    id largest = 0;
    for (const T token : part) largest = std::max(largest, static_cast<id>(token));
    if (largest < limit) continue;
    const auto found = std::ranges::find_if(part, outside);
    return static_cast<std::int64_t>(first) + (found - part.begin());
  }
  return static_cast<std::int64_t>(tokens.size());
}

/// Returns the sequence that contains byte `offset_bytes` of the `.bin`: the last sequence that
/// starts at or before this byte. Empty sequences that start at the same byte precede that
/// sequence.
MILLRACE_INLINE std::int64_t sequence_at(const formats::mmidx_view& idx,
                                         std::int64_t offset_bytes) {
  std::int64_t low = 0;
  std::int64_t high = idx.sequence_count();
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (idx.pointers[static_cast<std::size_t>(middle)] <= offset_bytes ? low : high) = middle;
  }
  return low;
}

}  // namespace detail

MILLRACE_INLINE std::optional<verified_sums> verify_sums(const std::filesystem::path& prefix,
                                                         const verify_options& options) {
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
  std::uint64_t done = 0;
  std::filesystem::path idx = prefix;
  detail::verify_blocks(idx += ".idx", sum.idx_bytes, sum.idx_blocks, options, done);
  std::filesystem::path bin = prefix;
  detail::verify_blocks(bin += ".bin", sum.bin_bytes, sum.bin_blocks, options, done);
  return verified_sums{formats::root_hex(sum), sum.version == formats::sum_version};
}

MILLRACE_INLINE void verify_tokens(const indexed_dataset& data, std::int64_t vocab_size,
                                   const verify_options& options) {
  assert(vocab_size > 0);
  const token_view stream = data.stream();
  const lost_page_watch watch(stream.bytes());
  std::uint64_t done = 0;
  formats::with_type(data.type(), [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>) {
      throw config_error(data.prefix().string() + ": tokens are " +
                         std::string(formats::name(data.type())) +
                         ", which cannot be ids of a vocabulary");
    } else {
      const auto tokens = stream.as<T>();
      detail::check_blocks(stream.bytes().size(), std::uint64_t{1} << 20, options, done, [&] {
        return [&](std::uint64_t begin, std::uint64_t end) {
          const auto part = tokens.subspan(begin / sizeof(T), (end - begin) / sizeof(T));
          const std::int64_t outside = detail::find_outside(part, vocab_size);
          watch.check_there(data.bin_path());
          if (outside == std::ssize(part)) return;
          const std::uint64_t at = begin + static_cast<std::uint64_t>(outside) * sizeof(T);
          const std::int64_t sequence =
              detail::sequence_at(data.index(), static_cast<std::int64_t>(at));
          const auto start =
              static_cast<std::uint64_t>(data.index().pointers[static_cast<std::size_t>(sequence)]);
          throw format_error(data.bin_path(), at,
                             "token " + std::to_string((at - start) / sizeof(T)) + " of sequence " +
                                 std::to_string(sequence) + " is " +
                                 std::to_string(part[static_cast<std::size_t>(outside)]) +
                                 ", expected 0 to " + std::to_string(vocab_size - 1));
        };
      });
    }
  });
}

}  // namespace millrace::dataset
