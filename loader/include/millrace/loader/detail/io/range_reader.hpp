// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/loader/detail/io/reader_report.hpp>

/// How bytes of data files come into memory: one interface, several ways (mmap, pread, io_uring,
/// cuFile), the same bytes by all of them.
namespace millrace::loader {

/// A file of tokens that is read from. `bytes` is what its index says that it has: reads stay
/// below, and a file that has less is an `io_error` that says so.
/// Where it is known which file that index was read beside, no other one is taken for it.
struct data_file {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::optional<io::file_identity> identity = std::nullopt;

  friend bool operator==(const data_file&, const data_file&) = default;
};

/// Bytes of a data file, whose number is its place in the reader's list.
using dataset::file_range;

/// A range, and the memory that it is to fill.
struct read_request {
  file_range from;
  std::byte* to = nullptr;
};

/// Reads ranges of a list of data files. One thread at a time calls `prefetch` and `gather`; any
/// may ask for the report. Files are opened when they are first read, and a bounded number of them
/// is held open, by all readers of the process together.
class range_reader {
 public:
  range_reader() = default;
  range_reader(const range_reader&) = delete;
  range_reader& operator=(const range_reader&) = delete;
  virtual ~range_reader() = default;

  /// Tells the kernel what will be gathered soon. A hint: what fails is found by `gather`.
  virtual void prefetch(std::span<const file_range> ranges) noexcept = 0;

  /// Fills the memory of every request, or throws; then what it holds is not defined. Requests may
  /// come in any order, and may be of the same bytes; their memory must not overlap.
  ///
  /// @pre each range is inside its file's `bytes`
  /// @throws io_error  a file cannot be opened or read, or is shorter than `bytes`; the message
  ///                   says the file and the byte. The reader may be used again.
  virtual void gather(std::span<const read_request> requests) = 0;

  /// What was asked of it and what it does, and what it has read.
  virtual reader_report report() const = 0;
};

}  // namespace millrace::loader
