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

/// Reads bytes of data files into memory. The interface `range_reader` has several implementations
/// (mmap, pread, io_uring, cuFile), which all return the same bytes.
namespace millrace::loader {

/// A file of tokens to read. `bytes` is the file's size according to its index; only these bytes
/// are read. If the file is shorter, the reader throws an `io_error` that says so. If `identity` is
/// set, it identifies the file as it was when the index was read. The reader rejects any other
/// file.
struct data_file {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::optional<io::file_identity> identity = std::nullopt;

  friend bool operator==(const data_file&, const data_file&) = default;
};

/// A byte range of a data file. `file` is the file's index in the reader's list of files.
using dataset::file_range;

/// A range, and the memory to read it into.
struct read_request {
  file_range from;
  std::byte* to = nullptr;
};

/// Reads ranges of a list of data files. `prefetch` and `gather` must not be called concurrently;
/// `report` may be called from any thread. Files are opened when they are first read. All readers
/// of the process share one limit on the number of open files.
class range_reader {
 public:
  range_reader() = default;
  range_reader(const range_reader&) = delete;
  range_reader& operator=(const range_reader&) = delete;
  virtual ~range_reader() = default;

  /// Announces ranges that will be gathered soon, so that their bytes can be loaded in advance.
  /// This is only a hint. If a range cannot be read, only `gather` reports the error.
  virtual void prefetch(std::span<const file_range> ranges) noexcept = 0;

  /// Reads the range of every request into its memory. If `gather` throws, the contents of this
  /// memory are undefined, but the reader remains usable. Requests may have any order. Their ranges
  /// may overlap, but their memory must not.
  ///
  /// @pre each range is within `data_file::bytes` of its file
  /// @throws io_error  a file cannot be opened or read, or is shorter than its `bytes`; the message
  ///                   names the file and the byte
  virtual void gather(std::span<const read_request> requests) = 0;

  /// Reports the requested back end, the back end in use, and how much was read.
  virtual reader_report report() const = 0;
};

}  // namespace millrace::loader
