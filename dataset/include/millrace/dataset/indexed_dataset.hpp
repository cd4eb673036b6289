// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <millrace/dataset/index_errors.hpp>
#include <millrace/dataset/token_view.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/mmidx_verify.hpp>
#include <millrace/formats/sidecar.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

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
class indexed_dataset {
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

/// Whether the name ends as that of a file of a dataset, or of one beside it.
inline bool is_file_of_dataset(const std::filesystem::path& path) {
  const auto extension = path.extension();
  return extension == ".bin" || extension == ".idx" ||
         std::ranges::any_of(formats::all_sidecars,
                             [&](formats::sidecar which) { return extension == suffix_of(which); });
}

/// @throws config_error  it is the name of a file of a dataset, and no prefix of one.
inline void check_prefix(const std::filesystem::path& prefix) {
  if (!is_file_of_dataset(prefix)) return;
  if (io::is_there(std::filesystem::path(prefix) += ".idx")) return;
  throw config_error(prefix.string() + ": give the prefix of a dataset without its " +
                     prefix.extension().string() + ": " +
                     std::filesystem::path(prefix).replace_extension().string());
}

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

inline indexed_dataset::indexed_dataset(std::filesystem::path prefix, open_options options)
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

inline void indexed_dataset::check_bin_size() const {
  const std::uint64_t expected = formats::bin_size_bytes(idx_);
  const std::uint64_t found = bin_size_bytes();
  if (found != expected) {
    throw format_error(bin_path(), std::min(found, expected),
                       std::to_string(found) + " bytes, expected " + std::to_string(expected) +
                           ", where the last sequence of " + idx_path().filename().string() +
                           " ends");
  }
  if (expected % formats::size_bytes(idx_.type) != 0) throw_bad_pointer(sequence_count() - 1);
}

inline std::int64_t indexed_dataset::sequence_length(std::int64_t i) const {
  assert(0 <= i && i < sequence_count());
  const std::int32_t length = idx_.lengths[index(i)];
  if (length < 0) [[unlikely]] {
    throw_bad_length(i);
  }
  return length;
}

inline token_view indexed_dataset::sequence(std::int64_t i) const {
  const auto item = formats::size_bytes(idx_.type);
  const auto length_bytes = static_cast<std::uint64_t>(sequence_length(i)) * item;  // < 2^34
  // A negative pointer becomes one beyond any file.
  const auto pointer = static_cast<std::uint64_t>(idx_.pointers[index(i)]);
  const auto bin = bin_file_.bytes();
  if (pointer > bin.size() || length_bytes > bin.size() - pointer || pointer % item != 0)
      [[unlikely]] {
    throw_bad_pointer(i);
  }
  return {idx_.type, bin.subspan(pointer, length_bytes)};
}

inline document_range indexed_dataset::document(std::int64_t d) const {
  assert(0 <= d && d < document_count());
  const std::int64_t first = idx_.document_index[index(d)];
  const std::int64_t last = idx_.document_index[index(d) + 1];
  if (first < 0 || last < first || last > sequence_count()) [[unlikely]] {
    throw_bad_document(d);
  }
  return {first, last};
}

inline token_view indexed_dataset::document_tokens(std::int64_t d) const {
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

inline void indexed_dataset::throw_bad_length(std::int64_t i) const {
  detail::throw_bad_length(idx_path(), idx_.lengths_offset() + 4 * index(i), i,
                           idx_.lengths[index(i)]);
}

inline void indexed_dataset::throw_bad_pointer(std::int64_t i) const {
  detail::throw_bad_pointer(idx_path(), idx_.pointers_offset() + 8 * index(i), i,
                            idx_.lengths[index(i)], idx_.pointers[index(i)],
                            formats::size_bytes(idx_.type), bin_size_bytes());
}

inline void indexed_dataset::throw_bad_document(std::int64_t d) const {
  detail::throw_bad_document(idx_path(), idx_.document_index_offset() + 8 * index(d), d,
                             idx_.document_index[index(d)], idx_.document_index[index(d) + 1],
                             sequence_count());
}

inline void indexed_dataset::throw_apart(std::int64_t i) const {
  throw format_error(idx_path(), idx_.pointers_offset() + 8 * index(i),
                     "sequence " + std::to_string(i) + " starts at byte " +
                         std::to_string(idx_.pointers[index(i)]) +
                         ", expected where the sequence before it in its document ends");
}

}  // namespace millrace::dataset
