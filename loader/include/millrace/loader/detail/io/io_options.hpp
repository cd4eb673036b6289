// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include <millrace/loader/detail/io/reader_options.hpp>

namespace millrace::loader {

/// Names of the libraries that cuFile needs, as dlopen(3) takes them, and a path that must exist.
struct cufile_names {
  std::string cufile = "libcufile.so.0";
  std::string driver = "libcuda.so.1";
  std::string udev = "/run/udev";  ///< where cuFile looks up disks

  auto operator<=>(const cufile_names&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Options of the reader of large requests (cuFile).
struct cufile_options {
  cufile_names names;
  /// Requests of fewer bytes are read with pread, because one cuFile call takes as long as many
  /// small reads.
  std::uint64_t least_bytes = std::uint64_t{1} << 20;
  /// If true, cuFile is used even if it only reads into host memory and copies from there.
  bool compatibility_mode = false;
};

/// Options for reading files.
struct io_options {
  /// Name of the back end: auto, mmap, pread, io_uring or cufile. If empty, the environment
  /// variable `MILLRACE_IO` names the back end; if the variable is not set, the back end is auto.
  std::string back_end;
  reader_options reader;
  int uring_depth = 64;             ///< reads that io_uring keeps in flight
  bool to_device = false;           ///< whether requests are read into GPU memory
  std::uint64_t request_bytes = 0;  ///< typical size of a request; 0: size of a window of tokens
  cufile_options cufile;
};

}  // namespace millrace::loader
