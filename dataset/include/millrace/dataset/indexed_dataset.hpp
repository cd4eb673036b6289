// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <type_traits>

#include <millrace/dataset/detail/index_errors.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/file_mapping.hpp>

// Example:
//
//     const millrace::dataset::indexed_dataset data("web_text_document");  // .bin and .idx
//     for (std::int64_t d = 0; d < data.document_count(); ++d) {
//       const millrace::dataset::token_view tokens = data.document_tokens(d);
//       std::cout << "document " << d << ": " << tokens.size() << " tokens\n";
//     }

namespace millrace::dataset {

/// Read-only view of contiguous tokens, in the dtype of their file. The dtype is known only at run
/// time.
///
/// The bytes must outlive the view; copies of a view are cheap and refer to the same bytes.
/// Positions and sizes are in tokens. Operator `[]` reads one token. To read many tokens, use
/// `copy_to` (converts) or `as<T>` (no copy), which examine the dtype only once per call.
class token_view {
 public:
  token_view() = default;

  /// @param bytes  may be unaligned; only `as<T>` requires alignment, which datasets provide
  /// @pre `bytes.size()` is a multiple of the item size.
  token_view(formats::dtype type, std::span<const std::byte> bytes) noexcept
      : bytes_(bytes), item_(formats::size_bytes(type)), type_(type) {
    assert(bytes.size() % item_ == 0);
  }

  formats::dtype type() const noexcept { return type_; }
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(bytes_.size() / item_); }
  bool empty() const noexcept { return bytes_.empty(); }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Token `i` as an id. If tokens are floats, truncates the token toward zero and saturates it to
  /// the range of int64; NaN gives 0.
  ///
  /// @pre 0 <= i < size()
  std::int64_t operator[](std::int64_t i) const noexcept;

  /// Token `i` as a double. Exact, except for int64 tokens beyond 2^53.
  ///
  /// @pre 0 <= i < size()
  double as_double(std::int64_t i) const noexcept;

  /// Tokens `first` to `first + count - 1`.
  ///
  /// @pre 0 <= first, 0 <= count, first + count <= size()
  token_view subview(std::int64_t first, std::int64_t count) const noexcept;

  /// The tokens as a span of T, without a copy.
  ///
  /// @pre the bytes are aligned for T, as in every view that a dataset returns.
  /// @throws config_error  T is not the C++ type of `type()`.
  template <class T>
  std::span<const T> as() const;

  /// Copies all tokens, converted to T.
  ///
  /// @pre out.size() == size(), and `out` does not overlap the bytes.
  /// @throws config_error  T cannot represent every value of `type()`, e.g. int64 to int32, or a
  ///                       float to an integer.
  template <class T>
  void copy_to(std::span<T> out) const;

  /// True if the dtypes and the bytes are equal.
  friend bool operator==(const token_view& a, const token_view& b) noexcept {
    return a.type_ == b.type_ && std::ranges::equal(a.bytes_, b.bytes_);
  }

 private:
  template <class T>
  T load(std::int64_t i) const noexcept {
    T value;
    std::memcpy(&value, bytes_.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }

  std::span<const std::byte> bytes_;
  std::size_t item_ = formats::size_bytes(formats::dtype::uint16);
  formats::dtype type_ = formats::dtype::uint16;
};

/// True if `To` can represent every value of `From`. `copy_to` requires this.
template <class To, class From>
inline constexpr bool holds_every = (std::is_integral_v<From> ||
                                     std::is_floating_point_v<To>)&&std::numeric_limits<To>::digits
                                        >= std::numeric_limits<From>::digits
                                    && (std::is_signed_v<To> || !std::is_signed_v<From>);

// ---------------------------------------------------------------------------------------------

namespace detail {

// Converts a float token to an id. Out-of-range values need care: casting a double outside the
// range of int64 is undefined behavior, and a file may contain any value.
inline std::int64_t to_id(double value) noexcept {
  constexpr double limit = 0x1p63;
  if (value >= limit) return std::numeric_limits<std::int64_t>::max();
  if (value < -limit) return std::numeric_limits<std::int64_t>::min();
  return value == value ? static_cast<std::int64_t>(value) : 0;
}

// Uses memcpy because the source may be unaligned. Compilers turn the loop into vector conversions.
template <class From, class To>
void convert(const std::byte* __restrict from, To* __restrict to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    to[i] = static_cast<To>(value);
  }
}

}  // namespace detail

inline std::int64_t token_view::operator[](std::int64_t i) const noexcept {
  assert(0 <= i && i < size());
  return formats::with_type(type_, [&]<class T>(T) -> std::int64_t {
    if constexpr (std::is_floating_point_v<T>) {
      return detail::to_id(static_cast<double>(load<T>(i)));
    } else {
      return static_cast<std::int64_t>(load<T>(i));
    }
  });
}

inline double token_view::as_double(std::int64_t i) const noexcept {
  assert(0 <= i && i < size());
  return formats::with_type(type_, [&]<class T>(T) { return static_cast<double>(load<T>(i)); });
}

inline token_view token_view::subview(std::int64_t first, std::int64_t count) const noexcept {
  assert(0 <= first && first <= size() && 0 <= count && count <= size() - first);
  return {type_, bytes_.subspan(static_cast<std::size_t>(first) * item_,
                                static_cast<std::size_t>(count) * item_)};
}

template <class T>
std::span<const T> token_view::as() const {
  if (formats::dtype_of<T>() != type_) {
    throw config_error("tokens are " + std::string(formats::name(type_)) + ", requested as " +
                       std::string(formats::name(formats::dtype_of<T>())));
  }
  assert(reinterpret_cast<std::uintptr_t>(bytes_.data()) % alignof(T) == 0);
  return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
}

template <class T>
void token_view::copy_to(std::span<T> out) const {
  assert(static_cast<std::int64_t>(out.size()) == size());
  formats::with_type(type_, [&]<class From>(From) {
    if constexpr (std::is_same_v<From, T>) {
      if (!empty()) std::memcpy(out.data(), bytes_.data(), bytes_.size());
    } else if constexpr (holds_every<T, From>) {
      detail::convert<From>(bytes_.data(), out.data(), out.size());
    } else {
      throw config_error("tokens are " + std::string(formats::name(type_)) +
                         ", whose values do not all fit the " + std::to_string(8 * sizeof(T)) +
                         (std::is_floating_point_v<T> ? "-bit floats" : "-bit integers") +
                         " asked for");
    }
  });
}

/// Which checks are made when an index is opened.
enum class check_level {
  quick,  ///< O(1): header, counts against the file sizes, first and last entries
  full,   ///< also every entry of the `.idx`; afterwards no access throws `format_error`
};

struct open_options {
  check_level check = check_level::quick;
};

/// The sequences of a document: [first, last).
struct document_range {
  std::int64_t first = 0;
  std::int64_t last = 0;

  std::int64_t size() const noexcept { return last - first; }
  bool empty() const noexcept { return first == last; }
  friend bool operator==(const document_range&, const document_range&) = default;
};

/// A Megatron dataset, PREFIX.bin and PREFIX.idx, mapped read-only. It may be empty.
///
///   documents   | 0       | 1 | 2 |         each a range of sequences, possibly empty
///   sequences   | 0 | 1   |   | 2 |         each a range of tokens, possibly empty
///   .bin        | t t t t t t   t t |       all tokens, without gaps
///
/// Example: print the length of every document.
///
///     const millrace::dataset::indexed_dataset data("out/web_text_document");
///     for (std::int64_t d = 0; d < data.document_count(); ++d) {
///       std::cout << data.document_tokens(d).size() << '\n';
///     }
///
/// Every view is valid for the lifetime of the dataset, even after the dataset is moved. Any number
/// of threads may read at the same time. Lengths, offsets and counts are in tokens, unless their
/// name says bytes.
///
/// With `check_level::quick`, entries in the middle of the index are not checked at first. Later,
/// each access checks the entries that it uses, and throws `format_error` with the path and the
/// byte of the `.idx`. As with any mapped file, neither file may shrink while the dataset exists
/// (see `io::file_mapping`).
///
/// Both files may be replaced at any time, in the order of formats/spec/mmidx.md. A dataset that is
/// open keeps the old files. A dataset that is opened during the replacement gets the old pair or
/// the new pair, or throws `io_error`.
class MILLRACE_EXPORT indexed_dataset {
 public:
  /// @param prefix  path of both files without `.bin` and `.idx`
  /// @throws config_error  the prefix ends in `.bin` or `.idx`.
  /// @throws io_error      a file cannot be opened, or is not a regular file; or the dataset was
  ///                       replaced repeatedly during 0.2 s (ESTALE).
  /// @throws format_error  the `.idx` is not a valid index, or the size of the `.bin` differs from
  ///                       the size in the index.
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
  /// True if each sequence has a mode (see `mode`).
  bool is_multimodal() const noexcept { return !idx_.modes.empty(); }

  /// The whole `.bin`, in stored order.
  token_view stream() const noexcept { return {idx_.type, bin_file_.bytes()}; }

  /// @pre 0 <= i < sequence_count()
  /// @throws format_error  the length is negative.
  std::int64_t sequence_length(std::int64_t i) const;

  /// @pre 0 <= i < sequence_count()
  /// @throws format_error  the sequence is outside the `.bin`, or does not begin at a token.
  token_view sequence(std::int64_t i) const;

  /// Part of sequence i.
  ///
  /// @pre 0 <= offset_tokens, 0 <= length_tokens, and their sum is at most sequence_length(i)
  /// @throws format_error  as for the whole sequence.
  token_view sequence(std::int64_t i, std::int64_t offset_tokens,
                      std::int64_t length_tokens) const {
    return sequence(i).subview(offset_tokens, length_tokens);
  }

  /// Sequence i as a span of T, without a copy.
  ///
  /// @pre 0 <= i < sequence_count()
  /// @throws config_error  T is not the C++ type of `type()`.
  /// @throws format_error  as for `sequence`.
  template <class T>
  std::span<const T> tokens(std::int64_t i) const {
    return sequence(i).as<T>();
  }

  /// Megatron's mode of sequence i, which is the modality of the sequence.
  ///
  /// @pre is_multimodal(), 0 <= i < sequence_count()
  std::int8_t mode(std::int64_t i) const noexcept { return idx_.modes[index(i)]; }

  /// @pre 0 <= d < document_count()
  /// @throws format_error  the document ends before it starts, or outside the sequences.
  document_range document(std::int64_t d) const;

  /// All tokens of a document: the tokens of its sequences, in order.
  ///
  /// @pre 0 <= d < document_count()
  /// @throws format_error  as for `document` and `sequence`, or there is a gap between sequences.
  token_view document_tokens(std::int64_t d) const;

  /// Releases the memory of the `.idx` pages. A later access reads them again. Useful after the
  /// caller has copied the needed entries of the index.
  void let_go_of_index() const noexcept { idx_file_.let_go(); }

  /// The whole `.idx`.
  std::span<const std::byte> idx_bytes() const noexcept { return idx_file_.bytes(); }

  /// The parsed `.idx`. With `check_level::quick`, its entries in the middle are unchecked.
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
  formats::mmidx_view idx_;  // points into idx_file_
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// @throws config_error  `prefix` is the path of a dataset file, e.g. of a `.bin`, and not a
///                       prefix.
MILLRACE_EXPORT void check_prefix(const std::filesystem::path& prefix);

/// Maps the index at `path`, then calls `map_bin`. If the index was replaced during these two
/// steps, repeats both, in up to 10 attempts. To detect a replacement, compares the identities of
/// the files: the mapping keeps the old index alive, so a new file cannot have the same identity.
///
/// @throws io_error  the index was replaced in every attempt (ESTALE), the index cannot be mapped,
///                   or `map_bin` throws an io_error.
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
      // After the first attempt, a missing index means that it is being replaced.
      if (attempt == 1 || e.code() != ENOENT || e.path() != path) throw;
    }
  }
  throw io_error(path, "open (it is being replaced by another process)", ESTALE);
}

}  // namespace detail

}  // namespace millrace::dataset
