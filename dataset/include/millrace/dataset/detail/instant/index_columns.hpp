// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include <millrace/dataset/detail/index_errors.hpp>
#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

/// How to access the entries of an `.idx`.
enum class index_access {
  map_if_possible,  ///< mapped; pread if the file system or a system limit does not allow mappings
  map_with_read_ahead,  ///< as map_if_possible, for sequential reads of many entries
  pread,                ///< no mapping, one system call per entry; for few reads per file
};

/// Reads single entries of three columns of an `.idx`: lengths, pointers and document index. An
/// order needs nothing else from a dataset, except the size of the `.bin`. Opening takes O(1) time.
///
/// Entries are returned as stored. Unless a function says that it checks an entry, the caller must
/// check the entry before using it. Thread-safe.
///
/// Functions that read entries throw `io_error` if the disk cannot read them. If the file was
/// truncated after this object mapped it, the first access to a missing page throws `io_error`, and
/// so do all later accesses (see `detail/lost_pages.hpp`). If a dataset owns the mapping, this
/// object does not detect missing pages. Without a mapping, reading past the end of the file throws
/// `format_error`.
class MILLRACE_EXPORT index_columns {
 public:
  /// @param prefix  path of both files without `.bin` and `.idx`
  /// @throws config_error  the prefix ends in `.bin` or `.idx`.
  /// @throws io_error      a path cannot be opened or is not a file, or a file is being replaced
  ///                       (ESTALE).
  /// @throws format_error  the `.idx` is invalid, or the size of the `.bin` differs from the size
  ///                       in the index.
  explicit index_columns(const std::filesystem::path& prefix,
                         index_access access = index_access::map_if_possible);

  /// Uses the columns of `data`, which must outlive this object. The dataset may be moved.
  explicit index_columns(const indexed_dataset& data);
  explicit index_columns(const indexed_dataset&&) = delete;

  std::filesystem::path prefix() const {
    return idx_path_.native().substr(0, idx_path_.native().size() - 4);  // without ".idx"
  }
  const std::filesystem::path& idx_path() const noexcept { return idx_path_; }
  std::uint64_t idx_size_bytes() const noexcept {
    return layout_.modes_offset() + (layout_.has_modes ? layout_.sequences : 0);
  }
  std::uint64_t bin_size_bytes() const noexcept { return bin_bytes_; }
  formats::dtype type() const noexcept { return layout_.type; }
  std::int64_t sequence_count() const noexcept { return layout_.sequence_count(); }
  std::int64_t document_count() const noexcept { return layout_.document_count(); }
  /// Tokens in the `.bin`.
  std::int64_t token_count() const noexcept { return token_count_; }
  bool is_mapped() const noexcept { return bytes_.data() != nullptr; }

  /// Number of tokens in sequence i, unchecked.
  /// @pre 0 <= i < sequence_count()
  std::int64_t length(std::int64_t i) const {
    assert(0 <= i && i < sequence_count());
    return entry<std::int32_t>(length_offset(i));
  }
  /// Number of tokens in sequence i, checked.
  /// @pre 0 <= i < sequence_count()
  /// @throws format_error  the length is negative.
  std::int64_t sequence_length(std::int64_t i) const {
    const std::int64_t tokens = length(i);
    check_length(i, tokens);
    return tokens;
  }
  /// Checks a length that the caller has already read, e.g. with `lengths`.
  /// @throws format_error  as for `sequence_length`.
  void check_length(std::int64_t i, std::int64_t tokens) const {
    if (tokens < 0) [[unlikely]] {
      detail::throw_bad_length(idx_path_, length_offset(i), i, tokens);
    }
  }
  /// Returns the lengths of sequences `first` to `first + count - 1`. If the file is mapped, the
  /// result points into the mapping; call `check_there` after reading it. Otherwise one system call
  /// reads the lengths into `scratch`, and the result is valid until `scratch` changes.
  /// @pre 0 <= first, 0 <= count, first + count <= sequence_count()
  formats::unaligned_span<std::int32_t> lengths(std::int64_t first, std::int64_t count,
                                                std::vector<std::byte>& scratch) const {
    assert(0 <= first && 0 <= count && count <= sequence_count() - first);
    return entries<std::int32_t>(length_offset(first), count, scratch);
  }
  /// Copies the lengths of all sequences to `out`.
  /// @pre out.size() == sequence_count()
  /// @throws io_error, format_error  the file cannot be read, or was truncated.
  void read_lengths(std::span<std::int32_t> out) const {
    assert(std::ssize(out) == sequence_count());
    const auto bytes = std::as_writable_bytes(out);
    if (is_mapped()) {
      if (!bytes.empty()) {
        std::memcpy(bytes.data(), bytes_.data() + layout_.lengths_offset(), bytes.size());
        check_there();
      }
    } else {
      read(layout_.lengths_offset(), bytes);
    }
  }
  /// The byte of the `.bin` at which sequence i starts.
  /// @pre 0 <= i < sequence_count()
  std::int64_t pointer(std::int64_t i) const {
    assert(0 <= i && i < sequence_count());
    return entry<std::int64_t>(pointer_offset(i));
  }
  /// The first sequence of document d; sequence_count() for d = document_count().
  /// @pre 0 <= d <= document_count()
  std::int64_t document_start(std::int64_t d) const {
    assert(0 <= d && d <= document_count());
    return entry<std::int64_t>(document_offset(d));
  }
  /// The first sequences of documents `first` to `first + count - 1`. As for `lengths`, the result
  /// points into the mapping or into `scratch`.
  /// @pre 0 <= first, 0 <= count, first + count <= document_count() + 1
  formats::unaligned_span<std::int64_t> document_starts(std::int64_t first, std::int64_t count,
                                                        std::vector<std::byte>& scratch) const {
    assert(0 <= first && 0 <= count && count <= document_count() + 1 - first);
    return entries<std::int64_t>(document_offset(first), count, scratch);
  }
  /// The sequences of document d, checked.
  /// @pre 0 <= d < document_count()
  /// @throws format_error  the document ends before it starts, or outside the sequences.
  document_range document(std::int64_t d) const {
    assert(0 <= d && d < document_count());
    const auto [first, last] = entry<std::array<std::int64_t, 2>>(document_offset(d));
    check_document(d, {first, last});
    return {first, last};
  }
  /// Checks a range that the caller has already read, e.g. with `document_starts`.
  /// @throws format_error  as for `document`.
  void check_document(std::int64_t d, const document_range& range) const {
    if (range.first < 0 || range.last < range.first || range.last > sequence_count()) [[unlikely]] {
      detail::throw_bad_document(idx_path_, document_offset(d), d, range.first, range.last,
                                 sequence_count());
    }
  }

  /// Throws if an accessed page of the mapping could not be read.
  /// @throws io_error  ENODATA: the file was truncated; EIO: the disk cannot read the file
  void check_there() const { watch_.check_there(idx_path_); }

  /// Byte offset of an entry in the file, for messages.
  std::uint64_t length_offset(std::int64_t i) const noexcept {
    return layout_.lengths_offset() + 4 * static_cast<std::uint64_t>(i);
  }
  std::uint64_t pointer_offset(std::int64_t i) const noexcept {
    return layout_.pointers_offset() + 8 * static_cast<std::uint64_t>(i);
  }
  std::uint64_t document_offset(std::int64_t d) const noexcept {
    return layout_.document_index_offset() + 8 * static_cast<std::uint64_t>(d);
  }

 private:
  /// @throws io_error, format_error  the file is not mapped, and the read failed or the file ended.
  template <class T>
  T entry(std::uint64_t offset) const {
    T value{};
    if (is_mapped()) {
      std::memcpy(&value, bytes_.data() + offset, sizeof(T));
      check_there();
    } else {
      read(offset, std::as_writable_bytes(std::span(&value, 1)));
    }
    return value;
  }
  template <class T>
  formats::unaligned_span<T> entries(std::uint64_t offset, std::int64_t count,
                                     std::vector<std::byte>& scratch) const {
    const std::size_t size = static_cast<std::size_t>(count) * sizeof(T);
    if (is_mapped()) return formats::unaligned_span<T>(bytes_.subspan(offset, size));
    scratch.resize(size);
    read(offset, scratch);
    return formats::unaligned_span<T>(std::span<const std::byte>(scratch));
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  std::uint64_t open_unreplaced(const std::filesystem::path& bin_path);
  void map(std::uint64_t size, index_access access);

  std::filesystem::path idx_path_;
  io::unique_fd idx_;                   // empty if mapped
  io::detail::unique_region region_;    // empty if not mapped, or if a dataset owns the mapping
  lost_page_watch watch_;               // watches `region_`, so it is destroyed first
  std::span<const std::byte> bytes_{};  // the mapped bytes; empty if not mapped
  formats::mmidx_layout layout_;
  std::uint64_t bin_bytes_ = 0;
  std::int64_t token_count_ = 0;
};

/// The lengths of all sequences of an `.idx`. Refers to an array in memory, to an array in a
/// mapping, or to `index_columns`. A view; thread-safe.
class length_column {
 public:
  /// @param lengths  must outlive this object
  length_column(formats::unaligned_span<std::int32_t> lengths) noexcept  // NOLINT: implicit
      : lengths_(lengths) {}

  /// @param columns  must outlive this object and must not be moved
  explicit length_column(const index_columns& columns) noexcept : columns_(&columns) {}

  /// @pre the `.idx` has a sequence i
  /// @throws io_error, format_error  the columns are not mapped and cannot be read.
  std::int64_t operator[](std::size_t i) const {
    return columns_ == nullptr ? lengths_[i] : columns_->length(static_cast<std::int64_t>(i));
  }

 private:
  formats::unaligned_span<std::int32_t> lengths_;
  const index_columns* columns_ = nullptr;
};

}  // namespace millrace::dataset
