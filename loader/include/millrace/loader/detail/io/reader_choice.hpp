// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>

namespace millrace::loader {

/// The ways of reading, and `automatic`, which is one of them by `choose_reader`.
enum class back_end : std::uint8_t { automatic, mmap, pread, io_uring, cufile };

/// As users write it: auto, mmap, pread, io_uring, cufile.
MILLRACE_EXPORT std::string_view name_of(back_end b) noexcept;

/// @param where  of the text, for the message: an option or a variable of the environment
/// @throws config_error  it names none
MILLRACE_EXPORT back_end back_end_of(std::string_view text, const std::string& where = "back end");

/// What a choice is made by.
struct reader_facts {
  std::uint64_t bytes = 0;  ///< of all files
  std::int64_t files = 0;
  std::int64_t network_files = 0;  ///< of these; `file_system_kind`
  std::int64_t memory_files = 0;   ///< of these, on tmpfs and the like

  std::int64_t maps = 0;       ///< that all files together would need
  std::int64_t most_maps = 0;  ///< that the process may have

  std::optional<std::uint64_t> available;  ///< memory that may still be taken; unknown: nothing
  std::string available_by;                ///< who says so
  std::optional<double> resident;  ///< share of the files in the page cache; not asked: nothing
  std::string resident_by;

  bool uring = false;     ///< whether a ring could be made
  std::string uring_why;  ///< why, or why not

  bool to_device = false;           ///< whether requests' memory is a GPU's
  std::uint64_t request_bytes = 0;  ///< that a request has, as a rule; 0: windows of tokens
  bool cufile_direct = false;       ///< asked of cuFile only for large requests to a GPU
  std::string cufile_why;
};

/// Who is to read, how maps are advised, and why.
struct reader_choice {
  back_end take = back_end::mmap;
  map_advice advice = map_advice::random;
  std::string why;  ///< never empty
};

/// Share of files in the page cache from which on they count as there.
inline constexpr double resident_enough = 0.9;
/// Times that files must exceed the available memory, for the page cache to be of no use.
inline constexpr std::uint64_t beyond_memory = 2;
/// From which on cuFile is of use.
inline constexpr std::uint64_t large_request = std::uint64_t{1} << 20;

/// The first of these that holds:
///
///   large requests to a GPU, which cuFile fills directly      cufile
///   a file lies on a network or a parallel file system        pread: a map faults page by page
///   all files lie in memory                                   mmap, by_memory
///   nobody tells how much memory is available                 mmap, random, with look-ahead
///   all files fit into half of the available memory           mmap, resident
///   nine tenths of the files are in memory already            mmap, resident
///   more maps would be needed than there may be               pread
///   the files are less than twice the available memory        mmap, by_memory: file by file
///   a ring could be made                                      io_uring
///   else                                                      mmap, random, with look-ahead
///
/// By these facts alone: nothing is asked of the system here.
MILLRACE_EXPORT reader_choice choose_reader(const reader_facts& facts);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// "12.5 GiB", "3.0 MiB", "100 bytes".
MILLRACE_EXPORT std::string readable_bytes(std::uint64_t bytes);

}  // namespace detail

}  // namespace millrace::loader
