// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <thread>

#include <millrace/dataset/index_errors.hpp>
#include <millrace/dataset/token_view.hpp>
#include <millrace/error.hpp>
#include <millrace/export.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

/// How much of an index is looked at before the dataset is used.
enum class check_level {
  quick,  ///< O(1): header, counts against the file sizes, first and last entries
  full,   ///< and every entry of the `.idx`; no access can throw `format_error` afterwards
};

struct open_options {
  check_level check = check_level::quick;
};

/// The sequences of a document: `first`, then those up to but without `last`.
struct document_range {
  std::int64_t first = 0;
  std::int64_t last = 0;

  std::int64_t size() const noexcept { return last - first; }
  bool empty() const noexcept { return first == last; }
  friend bool operator==(const document_range&, const document_range&) = default;
};

/// A Megatron dataset, PREFIX.bin and PREFIX.idx, mapped read-only. It may be empty.
///
///   documents   | 0       | 1 | 2 |         a run of sequences each, possibly none
///   sequences   | 0 | 1   |   | 2 |         a run of tokens each, possibly none
///   .bin        | t t t t t t   t t |       all tokens, one behind another
///
/// Every view given out is valid as long as the dataset, moves of it included. Reading from many
/// threads at once is safe. Lengths, offsets and counts are in tokens unless they say bytes.
///
/// A file may lie in the middle of an index that was only checked quickly: each access checks what
/// it follows, and throws `format_error` with the path and the byte of the `.idx`. Like any mapped
/// file, neither may shrink while the dataset lives (see `io::file_mapping`).
///
/// Both files may be replaced at any time, in the order of formats/spec/mmidx.md: who has them open
/// keeps the old ones, who opens them meanwhile gets the old pair, the new pair, or an `io_error`.
class MILLRACE_EXPORT indexed_dataset {
 public:
  /// @param prefix  path of both files without `.bin` and `.idx`
  /// @throws config_error  the prefix ends in `.bin` or `.idx`.
  /// @throws io_error      a file cannot be opened, or is not a regular file; or the dataset was
  ///                       replaced again and again during 0.2 s (ESTALE).
  /// @throws format_error  the `.idx` is none, or the `.bin` is not as long as it says.
  explicit indexed_dataset(std::filesystem::path prefix, open_options options = {});

  const std::filesystem::path& prefix() const noexcept { return prefix_; }
  std::filesystem::path idx_path() const { return with_suffix(prefix_, ".idx"); }
  std::filesystem::path bin_path() const { return with_suffix(prefix_, ".bin"); }
  std::uint64_t idx_size_bytes() const noexcept { return idx_file_.bytes().size(); }
  std::uint64_t bin_size_bytes() const noexcept { return bin_file_.bytes().size(); }

  formats::dtype type() const noexcept { return idx_.type; }
  std::int64_t sequence_count() const noexcept { return idx_.sequence_count(); }
  std::int64_t document_count() const noexcept { return idx_.document_count(); }
  /// Tokens in the `.bin`.
  std::int64_t token_count() const noexcept { return stream().size(); }
  /// Whether each sequence has a mode.
  bool is_multimodal() const noexcept { return !idx_.modes.empty(); }

  /// The whole `.bin`, in stored order.
  token_view stream() const noexcept { return {idx_.type, bin_file_.bytes()}; }

  /// @pre 0 <= i < sequence_count()
  /// @throws format_error  the length is negative.
  std::int64_t sequence_length(std::int64_t i) const;

  /// @pre 0 <= i < sequence_count()
  /// @throws format_error  the sequence is not inside the `.bin`, or between two tokens of it.
  token_view sequence(std::int64_t i) const;

  /// @pre and a part of sequence i: 0 <= offset_tokens, 0 <= length_tokens, and their sum is at
  ///      most sequence_length(i).
  /// @throws format_error  as for the whole sequence.
  token_view sequence(std::int64_t i, std::int64_t offset_tokens,
                      std::int64_t length_tokens) const {
    return sequence(i).subview(offset_tokens, length_tokens);
  }

  /// Sequence i as a span of the type on disk.
  ///
  /// @pre 0 <= i < sequence_count()
  /// @throws config_error  T is not the C++ type of `type()`.
  /// @throws format_error  as for `sequence`.
  template <class T>
  std::span<const T> tokens(std::int64_t i) const {
    return sequence(i).as<T>();
  }

  /// What Megatron calls the mode of sequence i: which modality it belongs to.
  ///
  /// @pre is_multimodal(), 0 <= i < sequence_count()
  std::int8_t mode(std::int64_t i) const noexcept { return idx_.modes[index(i)]; }

  /// @pre 0 <= d < document_count()
  /// @throws format_error  it ends before it starts, or outside the sequences.
  document_range document(std::int64_t d) const;

  /// All tokens of a document, its sequences one behind another.
  ///
  /// @pre 0 <= d < document_count()
  /// @throws format_error  as for `document` and `sequence`, or the sequences lie apart.
  token_view document_tokens(std::int64_t d) const;

  /// Lets go of the memory that the pages of the `.idx` take, which are read again when touched:
  /// for who has copied what it needs of them.
  void let_go_of_index() const noexcept { idx_file_.let_go(); }

  /// The `.idx` as parsed; entries in the middle are unchecked.
  const formats::mmidx_view& index() const noexcept { return idx_; }

 private:
  static std::filesystem::path with_suffix(std::filesystem::path prefix, const char* suffix) {
    return prefix += suffix;
  }
  static std::size_t index(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }

  void check_bin_size() const;
  [[noreturn]] void throw_bad_length(std::int64_t i) const;
  [[noreturn]] void throw_bad_pointer(std::int64_t i) const;
  [[noreturn]] void throw_bad_document(std::int64_t d) const;
  [[noreturn]] void throw_apart(std::int64_t i) const;

  std::filesystem::path prefix_;
  io::file_mapping idx_file_;
  io::file_mapping bin_file_;
  formats::mmidx_view idx_;  // into idx_file_
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// @throws config_error  it is the name of a file of a dataset, and no prefix of one.
MILLRACE_EXPORT void check_prefix(const std::filesystem::path& prefix);

/// Maps the index at `path`, then calls `map_bin`; both anew for as long as the index is another
/// one afterwards. The mapping holds the index, so that no other file has its identity.
///
/// @throws io_error  ESTALE: the index was another one each time. Or what a mapping throws.
template <class MapBin>
io::file_mapping map_unreplaced_idx(const std::filesystem::path& path, MapBin&& map_bin) {
  constexpr int attempts = 10;
  for (int attempt = 1; attempt <= attempts; ++attempt) {
    if (attempt > 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    try {
      io::file_mapping idx(path);
      map_bin();
      if (io::identity_of(path) == idx.identity()) return idx;
    } catch (const io_error& e) {
      // Once it was there, its absence is a moment of a replacement; before, it is just absent.
      if (attempt == 1 || e.code() != ENOENT || e.path() != path) throw;
    }
  }
  throw io_error(path, "open (it is being replaced by another process)", ESTALE);
}

}  // namespace detail

}  // namespace millrace::dataset
