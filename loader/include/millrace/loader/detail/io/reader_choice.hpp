// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>

namespace millrace::loader {

/// How files are read. With `automatic`, `choose_reader` selects the back end.
enum class back_end : std::uint8_t { automatic, mmap, pread, io_uring, cufile };

/// The name of a back end in options: auto, mmap, pread, io_uring or cufile.
MILLRACE_EXPORT std::string_view name_of(back_end b) noexcept;

/// @param where  names the option or environment variable that contains `text`, for the message
/// @throws config_error  the text is not the name of a back end
MILLRACE_EXPORT back_end back_end_of(std::string_view text, const std::string& where = "back end");

/// The facts on which `choose_reader` bases its choice.
struct reader_facts {
  std::uint64_t bytes = 0;  ///< total size of all files
  std::int64_t files = 0;
  std::int64_t network_files = 0;  ///< files on a network file system; see `file_system_kind`
  std::int64_t memory_files = 0;   ///< files on tmpfs and similar

  std::int64_t maps = 0;       ///< number of memory mappings (maps) that all files need together
  std::int64_t most_maps = 0;  ///< number of maps that the process may have

  std::optional<std::uint64_t> available;  ///< memory that can still be allocated; empty: unknown
  std::string available_by;                ///< source of `available`
  std::optional<double> resident;  ///< share of the files in the page cache; empty: not queried
  std::string resident_by;         ///< source of `resident`

  bool uring = false;     ///< whether a ring can be created
  std::string uring_why;  ///< why a ring can or cannot be created

  bool to_device = false;           ///< whether requests are read into GPU memory
  std::uint64_t request_bytes = 0;  ///< typical size of a request; 0: size of a window of tokens
  bool cufile_direct = false;       ///< whether cuFile reads directly into GPU memory; queried only
                                    ///< for large requests to a GPU
  std::string cufile_why;           ///< why cuFile does or does not read directly
};

/// The chosen back end, the advice for its memory mappings, and the reason for the choice.
struct reader_choice {
  back_end take = back_end::mmap;
  map_advice advice = map_advice::random;
  std::string why;  ///< never empty
};

/// Files count as cached if at least this share of their bytes is in the page cache.
inline constexpr double resident_enough = 0.9;
/// The page cache counts as useless if the files have at least this many times the size of the
/// available memory.
inline constexpr std::uint64_t beyond_memory = 2;
/// cuFile pays off for requests of at least this many bytes.
inline constexpr std::uint64_t large_request = std::uint64_t{1} << 20;

/// Returns the choice of the first row whose condition applies:
///
///   requests to a GPU are large, and cuFile reads directly    cufile
///   a file is on a network or parallel file system            pread: mmap would fault page by page
///   all files are on tmpfs or a similar file system           mmap, by_memory
///   the available memory is unknown                           mmap, random, with prefetch
///   all files fit into half of the available memory           mmap, resident
///   nine tenths of the files are in the page cache            mmap, resident
///   the files need more maps than the process may have        pread
///   the files are less than twice the available memory        mmap, by_memory: for each file
///   an io_uring ring can be created                           io_uring
///   otherwise                                                 mmap, random, with prefetch
///
/// The choice depends only on `facts`; the function makes no system calls.
MILLRACE_EXPORT reader_choice choose_reader(const reader_facts& facts);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Formats a size for messages: "12.5 GiB", "3.0 MiB", "100 bytes".
MILLRACE_EXPORT std::string readable_bytes(std::uint64_t bytes);

}  // namespace detail

}  // namespace millrace::loader
