// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/repair.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/mmidx_verify.hpp>
#include <millrace/formats/detail/sum_check.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "block_checksums.hpp"

namespace millrace::dataset {

namespace detail {

/// An `.idx` whose pointers may be wrong.
struct idx_to_repair {
  formats::mmidx_layout layout;
  formats::unaligned_span<std::int32_t> lengths;
  formats::unaligned_span<std::int64_t> pointers;
  std::int64_t changed = 0;  ///< pointers that are wrong
};

/// Checks everything but the pointers.
/// @throws format_error  without a path, or with that of the `.bin`
MILLRACE_INLINE idx_to_repair check_but_pointers(std::span<const std::byte> file,
                                                 const std::filesystem::path& bin) {
  idx_to_repair idx;
  idx.layout = formats::parse_mmidx_layout(
      file.first(std::min<std::size_t>(file.size(), formats::mmidx_header_bytes)), file.size());
  const formats::mmidx_layout& layout = idx.layout;
  idx.lengths = formats::unaligned_span<std::int32_t>(
      file.subspan(layout.lengths_offset(), 4 * layout.sequences));
  idx.pointers = formats::unaligned_span<std::int64_t>(
      file.subspan(layout.pointers_offset(), 8 * layout.sequences));
  const auto item = static_cast<std::int64_t>(formats::size_bytes(layout.type));
  std::int64_t expected = 0;
  for (std::size_t i = 0; i < idx.lengths.size(); ++i) {
    const std::int32_t length = idx.lengths[i];
    if (length < 0) {
      throw format_error(layout.lengths_offset() + 4 * i,
                         "length of sequence " + std::to_string(i) + " is " +
                             std::to_string(length) + ", expected 0 or more");
    }
    if (idx.pointers[i] != expected) ++idx.changed;
    if (__builtin_add_overflow(expected, length * item, &expected)) {
      throw format_error(layout.lengths_offset() + 4 * i,
                         "the lengths add up to more than 2^63 - 1 bytes");
    }
  }
  const formats::unaligned_span<std::int64_t> ends(
      file.subspan(layout.document_index_offset(), 8 * layout.document_index_size));
  std::int64_t before = 0;
  for (std::size_t d = 0; d < ends.size(); ++d) {
    const std::int64_t end = ends[d];
    const bool is_first = d == 0;
    const bool is_last = d + 1 == ends.size();
    const std::int64_t least = is_last ? layout.sequence_count() : before;
    const std::int64_t most = is_first ? 0 : layout.sequence_count();
    if (end < least || end > most) {
      throw format_error(layout.document_index_offset() + 8 * d,
                         "entry " + std::to_string(d) + " of the document index is " +
                             std::to_string(end) + ", expected " + std::to_string(least) + " to " +
                             std::to_string(most));
    }
    before = end;
  }
  const io::unique_fd fd = io::open_read_only(bin, O_NONBLOCK);
  const std::uint64_t size = io::regular_file_size(fd, bin);
  if (size != static_cast<std::uint64_t>(expected)) {
    throw format_error(bin, std::min(size, static_cast<std::uint64_t>(expected)),
                       "the file has " + std::to_string(size) + " bytes, expected " +
                           std::to_string(expected) + ", the sum of the lengths");
  }
  return idx;
}

/// Writes the file with other pointers. Compares it with the checksums, if given.
/// @throws format_error  without a path: the checksums are those of another file
MILLRACE_INLINE void write_with_pointers(std::span<const std::byte> file, const idx_to_repair& idx,
                                         io::atomic_file& out, formats::sum_check* check) {
  const auto put = [&](std::span<const std::byte> bytes) {
    out.append(bytes);
    if (check != nullptr) check->add(bytes);
  };
  constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  const auto copy = [&](std::span<const std::byte> bytes) {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), piece_bytes))) {
      put(bytes.first(std::min(bytes.size(), piece_bytes)));
    }
  };
  copy(file.first(idx.layout.pointers_offset()));
  const auto item = static_cast<std::int64_t>(formats::size_bytes(idx.layout.type));
  std::vector<std::int64_t> pointers;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < idx.lengths.size(); ++i) {
    pointers.push_back(next);
    next += idx.lengths[i] * item;
    if (pointers.size() < piece_bytes / sizeof(next) && i + 1 < idx.lengths.size()) continue;
    put(std::as_bytes(std::span(pointers)));
    pointers.clear();
  }
  copy(file.subspan(idx.layout.document_index_offset()));
  if (check != nullptr) check->finish();
}

/// The checksums of the blocks of a file.
MILLRACE_INLINE std::vector<std::uint32_t> checksums_of(const std::filesystem::path& path,
                                                        const verify_options& options,
                                                        std::uint64_t& file_bytes,
                                                        std::uint64_t& done) {
  const io::unique_fd fd = io::open_read_only(path, O_NONBLOCK);
  file_bytes = io::regular_file_size(fd, path);
  std::vector<std::uint32_t> sums(formats::sum_block_count(file_bytes));
  checksum_blocks(path, fd, file_bytes, options, done,
                  [&](std::size_t block, std::uint64_t, std::uint64_t, std::uint32_t checksum) {
                    sums[block] = checksum;
                  });
  return sums;
}

/// The number of blocks that do not have the old checksum.
MILLRACE_INLINE std::int64_t count_changed(const std::vector<std::uint32_t>& sums,
                                           formats::unaligned_span<std::uint32_t> old) {
  std::int64_t changed = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    changed += i < old.size() && old[i] == sums[i] ? 0 : 1;
  }
  return changed;
}

}  // namespace detail

MILLRACE_INLINE pointer_repair repair_pointers(const std::filesystem::path& prefix) {
  const auto with = [&](const char* suffix) { return std::filesystem::path(prefix) += suffix; };
  const std::filesystem::path idx_path = with(".idx");
  const io::file_mapping file(idx_path);
  const lost_page_watch watch(file.bytes());
  try {
    const detail::idx_to_repair idx = detail::check_but_pointers(file.bytes(), with(".bin"));
    watch.check_there(idx_path);
    pointer_repair done{.path = {},
                        .changed = idx.changed,
                        .sequences = idx.layout.sequence_count(),
                        .proven = false};
    if (idx.changed == 0) return done;

    const auto sum_path = sidecar_paths(prefix).sum;
    const auto sum_file = map_sidecar(sum_path);
    formats::sum_view sum;
    std::optional<formats::sum_check> check;
    if (sum_file) {
      try {
        sum = formats::parse_sum(sum_file->bytes());
      } catch (const format_error& e) {
        throw e.in(sum_path);
      }
      if (sum.idx_bytes != file.bytes().size()) {
        throw format_error(sum_path, 24,
                           "the .idx had " + std::to_string(sum.idx_bytes) +
                               " bytes when its checksums were written, found " +
                               std::to_string(file.bytes().size()));
      }
      check.emplace(sum.idx_blocks, sum.idx_bytes);
    }
    io::atomic_file out(with(".idx.repaired"));
    detail::write_with_pointers(file.bytes(), idx, out, check ? &*check : nullptr);
    watch.check_there(idx_path);
    out.commit();
    done.path = out.path();
    done.proven = check.has_value();
    return done;
  } catch (const format_error& e) {
    watch.check_there(idx_path);
    const auto& path = e.path().empty() ? idx_path : e.path();
    throw format_error(path, e.offset(),
                       e.problem() + "; not repaired, because a repair would have to guess");
  }
}

MILLRACE_INLINE checksum_repair repair_checksums(const std::filesystem::path& prefix,
                                                 const std::optional<std::string>& known_root,
                                                 const verify_options& options) {
  const indexed_dataset data(prefix, {.check = check_level::full});
  std::uint64_t bin_bytes = 0;
  std::uint64_t idx_bytes = 0;
  std::uint64_t done = 0;
  const auto idx = detail::checksums_of(data.idx_path(), options, idx_bytes, done);
  const auto bin = detail::checksums_of(data.bin_path(), options, bin_bytes, done);

  const auto sum_path = sidecar_paths(prefix).sum;
  const auto sum_file = map_sidecar(sum_path);
  std::optional<formats::sum_view> old;
  if (sum_file) {
    try {
      old = formats::parse_sum(sum_file->bytes());
    } catch (const format_error&) {  // what a repair is for
    }
  }
  checksum_repair repair;
  repair.blocks = std::ssize(bin) + std::ssize(idx);
  repair.changed = detail::count_changed(bin, old.value_or(formats::sum_view{}).bin_blocks) +
                   detail::count_changed(idx, old.value_or(formats::sum_view{}).idx_blocks);

  auto file = formats::encode_sum(bin_bytes, bin, idx_bytes, idx);
  const auto root_of = [](const std::vector<std::byte>& sum) {
    return formats::root_hex(formats::parse_sum(sum));
  };
  repair.root = root_of(file);
  // Without a change, the old file knows more than this function: it keeps its version.
  const bool is_same =
      old && repair.changed == 0 && old->bin_bytes == bin_bytes && old->idx_bytes == idx_bytes;
  if (is_same && old->version == formats::sum_version) {
    repair.proven = true;
    return repair;
  }
  repair.proven = known_root == repair.root;
  if (!repair.proven) {
    file = formats::encode_sum(bin_bytes, bin, idx_bytes, idx, formats::sum_version_repaired);
    repair.root = root_of(file);
    if (is_same) return repair;
  }
  io::atomic_file out(std::filesystem::path(prefix) += ".sum.repaired");
  out.append(file);
  out.commit();
  repair.path = out.path();
  return repair;
}

}  // namespace millrace::dataset
