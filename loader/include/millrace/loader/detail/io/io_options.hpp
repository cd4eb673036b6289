// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include <millrace/loader/detail/io/reader_options.hpp>

namespace millrace::loader {

/// Which libraries are loaded, by names as dlopen(3) takes them, and what has to be there.
struct cufile_names {
  std::string cufile = "libcufile.so.0";
  std::string driver = "libcuda.so.1";
  std::string udev = "/run/udev";  ///< by which cuFile finds disks

  auto operator<=>(const cufile_names&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// What the reader of large requests is told.
struct cufile_options {
  cufile_names names;
  /// Smaller requests are read by pread: cuFile's own cost for each is that of many of them.
  std::uint64_t least_bytes = std::uint64_t{1} << 20;
  /// Whether to use it even where it only copies through host memory.
  bool compatibility_mode = false;
};

/// What a user says of reading; all of it may be left as it is.
struct io_options {
  /// auto, mmap, pread, io_uring or cufile. Empty: what the variable MILLRACE_IO of the environment
  /// says, or auto.
  std::string back_end;
  reader_options reader;
  int uring_depth = 64;             ///< reads that io_uring has in flight
  bool to_device = false;           ///< whether requests' memory is a GPU's
  std::uint64_t request_bytes = 0;  ///< that requests have, as a rule; 0: windows of tokens
  cufile_options cufile;
};

}  // namespace millrace::loader
