// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include <millrace/error.hpp>
#include <millrace/io/unique_fd.hpp>

/// Whole reads and writes over descriptors: EINTR and short transfers end here.
namespace millrace::io {

/// Writes all of `bytes` at `offset`. Safe from several threads on one descriptor.
///
/// @throws io_error  e.g. ENOSPC, EFBIG, EIO; an unknown part of the bytes may be written.
inline void pwrite_all(const unique_fd& fd, std::span<const std::byte> bytes, std::uint64_t offset,
                       const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ::ssize_t n = uninterrupted([&] {
      return ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<::off_t>(offset));
    });
    if (n < 0) throw io_error(path, "write", errno);
    if (n == 0) throw io_error(path, "write (nothing was taken)", EIO);  // else an endless loop
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

/// Reads until `out` is full or the file ends.
///
/// @return bytes read; less than `out.size()` only at the end of the file.
/// @throws io_error  the read failed.
inline std::size_t pread_some(const unique_fd& fd, std::span<std::byte> out, std::uint64_t offset,
                              const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ::ssize_t n = uninterrupted([&] {
      return ::pread(fd.get(), out.data() + done, out.size() - done,
                     static_cast<::off_t>(offset + done));
    });
    if (n < 0) throw io_error(path, "read", errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

/// The folder that holds `path`, "." for a bare name.
inline std::filesystem::path parent_folder(const std::filesystem::path& path) {
  const auto parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

/// @throws io_error  `folder` is not a folder that may be listed.
inline unique_fd open_folder(const std::filesystem::path& folder) {
  return open_read_only(folder, O_DIRECTORY);
}

/// Makes the names in a folder durable: a rename or unlink survives power loss only after this.
///
/// @throws io_error  the kernel could not.
inline void sync_folder(const unique_fd& fd, const std::filesystem::path& folder) {
  // EINVAL: a file system that has no such operation has nothing to make durable by it.
  if (uninterrupted([&] { return ::fsync(fd.get()); }) != 0 && errno != EINVAL) {
    throw io_error(folder, "fsync", errno);
  }
}

/// @throws io_error  the folder cannot be opened or synced.
inline void sync_folder(const std::filesystem::path& folder) {
  sync_folder(open_folder(folder), folder);
}

/// Removes a file if it is there.
///
/// @return whether it was there.
/// @throws io_error  it is there and cannot be removed.
inline bool remove_if_exists(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) == 0) return true;
  if (errno != ENOENT) throw io_error(path, "unlink", errno);
  return false;
}

}  // namespace millrace::io
