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

/// Reads bytes of data files into memory. One interface with several implementations (mmap, pread,
/// io_uring, cuFile); all return the same bytes.
namespace millrace::loader {

/// A file of tokens to read. `bytes` is its size according to its index. Reads stay within that
/// size, and a shorter file causes an `io_error` that says so. If `identity` is set, it identifies
/// the data file that the index was read with, and any other file is rejected.
struct data_file {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::optional<io::file_identity> identity = std::nullopt;

  friend bool operator==(const data_file&, const data_file&) = default;
};

/// A byte range of a data file. Its file number is an index in the reader's list of files.
using dataset::file_range;

/// A range, and the memory to read it into.
struct read_request {
  file_range from;
  std::byte* to = nullptr;
};

/// Reads ranges of a list of data files. `prefetch` and `gather` must not be called concurrently;
/// `report` may be called from any thread. Files are opened when they are first read. The number of
/// open files is bounded over all readers of the process.
class range_reader {
 public:
  range_reader() = default;
  range_reader(const range_reader&) = delete;
  range_reader& operator=(const range_reader&) = delete;
  virtual ~range_reader() = default;

  /// Announces to the kernel which ranges will be gathered soon. This is only a hint: if it fails,
  /// the failure surfaces in `gather`.
  virtual void prefetch(std::span<const file_range> ranges) noexcept = 0;

  /// Fills the memory of every request. If it throws, the contents of that memory are undefined.
  /// Requests may come in any order and may overlap in the file; their memory must not overlap.
  ///
  /// @pre each range is inside its file's `bytes`
  /// @throws io_error  a file cannot be opened or read, or is shorter than `bytes`; the message
  ///                   names the file and the byte. The reader remains usable.
  virtual void gather(std::span<const read_request> requests) = 0;

  /// Reports what was requested, which back end reads, and what it has read.
  virtual reader_report report() const = 0;
};

}  // namespace millrace::loader
