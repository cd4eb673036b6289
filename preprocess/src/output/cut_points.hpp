// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include <millrace/formats/detail/varint.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_mapping.hpp>

#include "record/encoded_block.hpp"

/// `P.cuts` of a task with `--max-tokens`. No task knows how many tokens the earlier tasks have, so
/// the merge decides before which document the run ends. It then needs the counts of the task up to
/// any of its documents. Specification: formats/spec/cuts.md.
namespace millrace::preprocess {

/// What a task has read and written before one of its documents, or in all.
struct cut_point {
  record_counts counts;           ///< `documents` is not stored: it is the number of the point
  std::uint64_t input = 0;        ///< number, as in P.src, of the input that has the document
  std::uint64_t begin = 0;        ///< place of the document's record in that input, as in P.src
  std::uint64_t input_bytes = 0;  ///< what was read of that input: as input_extent::text_bytes,
  std::uint64_t input_lines = 0;  ///< `lines` and `crc32c`
  std::uint32_t input_crc32c = 0;
  std::vector<std::int64_t> tokens;  ///< of each key of the run

  bool operator==(const cut_point&) const = default;
};

/// The numbers of a point, in the order of the file. Those that change with most documents are
/// first.
class cut_numbers {
 public:
  static constexpr std::size_t fixed = 13 + fault_kinds;

  explicit cut_numbers(std::size_t keys) : values_(fixed + keys) {}
  explicit cut_numbers(const cut_point& point);
  cut_point point() const;

  /// Appends the differences from `before` to `to`.
  void encode(const cut_numbers& before, std::vector<std::byte>& to) const;
  /// Adds differences to these numbers.
  ///
  /// @throws format_error  the bytes are damaged, or a count or a number of tokens falls; the error
  ///                       has no path.
  void decode(formats::varint_reader& from);

 private:
  std::vector<std::uint64_t> values_;
};

/// Writes P.cuts while documents arrive. Not thread-safe.
class cut_writer {
 public:
  /// @param keys  number of keys of the run
  /// @param key   the one that this dataset has
  cut_writer(const std::filesystem::path& path, std::size_t keys, std::size_t key);
  /// Goes on after the points of the first `documents` documents, and drops what follows.
  ///
  /// @throws config_error  the file does not have them.
  cut_writer(const std::filesystem::path& path, std::size_t keys, std::size_t key,
             std::int64_t documents);

  /// Appends a point, which flush() or finish() writes to the file.
  void append(const cut_point& point);
  void flush();
  /// Completes the file, under its partial name.
  ///
  /// @pre the last point is that of the whole task
  void finish();

  io::atomic_file& file() noexcept { return file_; }

 private:
  io::atomic_file file_;
  cut_numbers last_;
  std::uint64_t points_ = 0;
  std::uint32_t crc32c_ = 0;
  std::vector<std::byte> bytes_;  // not yet written
};

/// Upper bound of the usual size of a P.cuts. A point may need more, but hardly any do.
constexpr std::uint64_t usual_cuts_bytes(std::uint64_t documents) noexcept {
  return 64 + 24 * documents;
}

/// Reads a complete P.cuts.
class cut_reader {
 public:
  /// Compares the file with its checksum.
  ///
  /// @throws io_error, format_error  it cannot be read, or is damaged.
  explicit cut_reader(const std::filesystem::path& path);

  std::size_t keys() const noexcept { return keys_; }
  std::size_t key() const noexcept { return key_; }
  /// One less than the number of points.
  std::int64_t documents() const noexcept { return documents_; }

  /// Calls `take(point)` for all points, in order.
  ///
  /// @throws format_error  the points are damaged.
  void for_each(const std::function<void(const cut_point&)>& take) const;

 private:
  std::filesystem::path path_;
  io::file_mapping file_;
  std::span<const std::byte> points_;
  std::size_t keys_ = 0;
  std::size_t key_ = 0;
  std::int64_t documents_ = 0;
};

}  // namespace millrace::preprocess
