// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/indexed_dataset.hpp>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include <millrace/dataset/detail/index_errors.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/mmidx_verify.hpp>
#include <millrace/formats/detail/sidecar.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::dataset {

namespace detail {

/// True if the path has the extension of a dataset file or of a sidecar file.
MILLRACE_INLINE bool is_file_of_dataset(const std::filesystem::path& path) {
  const auto extension = path.extension();
  return extension == ".bin" || extension == ".idx" ||
         std::ranges::any_of(formats::all_sidecars,
                             [&](formats::sidecar which) { return extension == suffix_of(which); });
}

/// @throws config_error  `prefix` is the path of a dataset file, e.g. of a `.bin`, and not a
///                       prefix.
MILLRACE_INLINE void check_prefix(const std::filesystem::path& prefix) {
  if (!is_file_of_dataset(prefix)) return;
  if (io::is_there(std::filesystem::path(prefix) += ".idx")) return;
  throw config_error(prefix.string() + ": pass the dataset prefix without " +
                     prefix.extension().string() + ": " +
                     std::filesystem::path(prefix).replace_extension().string());
}

}  // namespace detail

MILLRACE_INLINE indexed_dataset::indexed_dataset(std::filesystem::path prefix, open_options options)
    : prefix_(std::move(prefix)) {
  detail::check_prefix(prefix_);
  idx_file_ =
      detail::map_unreplaced_idx(idx_path(), [this] { bin_file_ = io::file_mapping(bin_path()); });
  try {
    idx_ = formats::parse_mmidx(idx_file_.bytes());
    check_bin_size();
    if (options.check == check_level::full) formats::verify_mmidx(idx_, bin_size_bytes());
  } catch (const format_error& e) {
    if (!e.path().empty()) throw;
    throw e.in(idx_path());
  }
}

MILLRACE_INLINE void indexed_dataset::check_bin_size() const {
  const std::uint64_t expected = idx_.bin_size_bytes;
  const std::uint64_t found = bin_size_bytes();
  if (found != expected) {
    throw format_error(bin_path(), std::min(found, expected),
                       std::to_string(found) + " bytes, expected " + std::to_string(expected) +
                           ", where the last sequence of " + idx_path().filename().string() +
                           " ends");
  }
  if (expected % formats::size_bytes(idx_.type) != 0) throw_bad_pointer(sequence_count() - 1);
}

MILLRACE_INLINE std::int64_t indexed_dataset::sequence_length(std::int64_t i) const {
  assert(0 <= i && i < sequence_count());
  const std::int32_t length = idx_.lengths[index(i)];
  if (length < 0) [[unlikely]] {
    throw_bad_length(i);
  }
  return length;
}

MILLRACE_INLINE token_view indexed_dataset::sequence(std::int64_t i) const {
  const auto item = formats::size_bytes(idx_.type);
  const auto length_bytes = static_cast<std::uint64_t>(sequence_length(i)) * item;  // < 2^34
  // As an unsigned number, a negative pointer is larger than any file.
  const auto pointer = static_cast<std::uint64_t>(idx_.pointers[index(i)]);
  const auto bin = bin_file_.bytes();
  if (pointer > bin.size() || length_bytes > bin.size() - pointer || pointer % item != 0)
      [[unlikely]] {
    throw_bad_pointer(i);
  }
  return {idx_.type, bin.subspan(pointer, length_bytes)};
}

MILLRACE_INLINE document_range indexed_dataset::document(std::int64_t d) const {
  assert(0 <= d && d < document_count());
  const std::int64_t first = idx_.document_index[index(d)];
  const std::int64_t last = idx_.document_index[index(d) + 1];
  if (first < 0 || last < first || last > sequence_count()) [[unlikely]] {
    throw_bad_document(d);
  }
  return {first, last};
}

MILLRACE_INLINE token_view indexed_dataset::document_tokens(std::int64_t d) const {
  const document_range range = document(d);
  if (range.empty()) return stream().subview(0, 0);
  const token_view head = sequence(range.first);
  std::int64_t count = head.size();
  for (std::int64_t i = range.first + 1; i < range.last; ++i) {
    const token_view next = sequence(i);
    if (next.bytes().data() !=
        head.bytes().data() + count * static_cast<std::int64_t>(formats::size_bytes(idx_.type))) {
      throw_apart(i);
    }
    count += next.size();
  }
  const auto start = head.bytes().data() - bin_file_.bytes().data();
  return stream().subview(start / static_cast<std::int64_t>(formats::size_bytes(idx_.type)), count);
}

MILLRACE_INLINE void indexed_dataset::throw_bad_length(std::int64_t i) const {
  detail::throw_bad_length(idx_path(), idx_.lengths_offset() + 4 * index(i), i,
                           idx_.lengths[index(i)]);
}

MILLRACE_INLINE void indexed_dataset::throw_bad_pointer(std::int64_t i) const {
  detail::throw_bad_pointer(idx_path(), idx_.pointers_offset() + 8 * index(i), i,
                            idx_.lengths[index(i)], idx_.pointers[index(i)],
                            formats::size_bytes(idx_.type), bin_size_bytes());
}

MILLRACE_INLINE void indexed_dataset::throw_bad_document(std::int64_t d) const {
  detail::throw_bad_document(idx_path(), idx_.document_index_offset() + 8 * index(d), d,
                             idx_.document_index[index(d)], idx_.document_index[index(d) + 1],
                             sequence_count());
}

MILLRACE_INLINE void indexed_dataset::throw_apart(std::int64_t i) const {
  throw format_error(idx_path(), idx_.pointers_offset() + 8 * index(i),
                     "sequence " + std::to_string(i) + " starts at byte " +
                         std::to_string(idx_.pointers[index(i)]) +
                         ", expected where the sequence before it in its document ends");
}

}  // namespace millrace::dataset
