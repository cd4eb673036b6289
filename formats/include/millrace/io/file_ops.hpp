// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/detail/page_cache.hpp>
#include <millrace/io/detail/unique_fd.hpp>

// Example:
//
//     if (millrace::io::is_file("web_text_document.idx")) {
//       millrace::io::sync_folder(millrace::io::parent_folder("web_text_document.idx"));
//     }

/// Complete reads and writes on descriptors. These functions handle EINTR and short transfers.
namespace millrace::io {

/// Writes all of `bytes` at `offset`. Several threads may use one descriptor at once.
///
/// @throws io_error  e.g. ENOSPC, EFBIG, EIO. An unknown part of the bytes may have been written.
inline void pwrite_all(const unique_fd& fd, std::span<const std::byte> bytes, std::uint64_t offset,
                       const std::filesystem::path& path, page_cache pages = page_cache::keep) {
  while (!bytes.empty()) {
    const auto write = [&](int flags) {
      const auto at = static_cast<::off_t>(offset);
      // For pwritev2, an offset of -1 means the current file position. pwrite rejects -1.
      if (flags == 0 || at < 0) return ::pwrite(fd.get(), bytes.data(), bytes.size(), at);
      const ::iovec part{const_cast<std::byte*>(bytes.data()),
                         bytes.size()};  // NOLINT: older than const
      return ::pwritev2(fd.get(), &part, 1, at, flags);
    };
    const ::ssize_t n = detail::with_page_cache(
        fd, pages, write, [&](std::uint64_t done) { drop_written(fd, offset, done); });
    if (n < 0) throw io_error(path, "write", errno);
    // Prevent an endless loop.
    if (n == 0) throw io_error(path, "write (0 bytes were written)", EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

/// Reads with one system call, which may return fewer bytes than `out` has.
///
/// @return bytes read; 0 at the end of the file
/// @throws io_error  the read failed.
inline std::size_t pread_once(const unique_fd& fd, std::span<std::byte> out, std::uint64_t offset,
                              const std::filesystem::path& path,
                              page_cache pages = page_cache::keep) {
  const auto read = [&](int flags) {
    const auto at = static_cast<::off_t>(offset);
    const ::iovec part{out.data(), out.size()};
    if (flags == 0 || at < 0) return ::pread(fd.get(), part.iov_base, part.iov_len, at);
    return ::preadv2(fd.get(), &part, 1, at, flags);
  };
  const ::ssize_t n = detail::with_page_cache(
      fd, pages, read, [&](std::uint64_t done) { drop_read(fd, offset, done); });
  if (n < 0) throw io_error(path, "read", errno);
  return static_cast<std::size_t>(n);
}

/// Reads until `out` is full or the file ends.
///
/// @return bytes read; fewer than `out.size()` only at the end of the file
/// @throws io_error  the read failed.
inline std::size_t pread_some(const unique_fd& fd, std::span<std::byte> out, std::uint64_t offset,
                              const std::filesystem::path& path,
                              page_cache pages = page_cache::keep) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t n = pread_once(fd, out.subspan(done), offset + done, path, pages);
    if (n == 0) break;
    done += n;
  }
  return done;
}

namespace detail {

/// Interprets the errno of a failed copy_file_range. Returns true if copy_file_range cannot copy
/// between these two files, but read and write can.
inline bool must_pass_through(int code) {
  return code == EXDEV || code == EINVAL || code == ENOSYS || code == EOPNOTSUPP;
}

inline std::uint64_t copy_by_hand(const unique_fd& from, std::uint64_t from_offset,
                                  const std::filesystem::path& from_path, const unique_fd& to,
                                  std::uint64_t to_offset, const std::filesystem::path& to_path,
                                  std::uint64_t size) {
  std::vector<std::byte> chunk(std::min<std::uint64_t>(size, std::uint64_t{1} << 20));
  std::uint64_t done = 0;
  while (done < size) {
    const auto part = std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), size - done));
    const std::size_t n = pread_some(from, part, from_offset + done, from_path);
    pwrite_all(to, part.first(n), to_offset + done, to_path);
    done += n;
    if (n < part.size()) break;
  }
  return done;
}

}  // namespace detail

/// Copies `size` bytes from one file to another. Uses copy_file_range, because it lets some file
/// systems share the blocks instead of copying them. If that call cannot be used, copies through a
/// buffer of 1 MiB.
///
/// @return bytes copied; fewer than `size` only if `from` ends
/// @throws io_error  e.g. ENOSPC, EIO. An unknown part of the bytes may have been written.
inline std::uint64_t copy_range(const unique_fd& from, std::uint64_t from_offset,
                                const std::filesystem::path& from_path, const unique_fd& to,
                                std::uint64_t to_offset, const std::filesystem::path& to_path,
                                std::uint64_t size) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30;  // per call, to handle signals in between
  std::uint64_t done = 0;
  while (done < size) {
    auto in = static_cast<::off_t>(from_offset + done);
    auto out = static_cast<::off_t>(to_offset + done);
    const ::ssize_t n = uninterrupted([&] {
      return ::copy_file_range(from.get(), &in, to.get(), &out, std::min(most, size - done), 0);
    });
    if (n < 0 && !detail::must_pass_through(errno)) throw io_error(to_path, "copy", errno);
    // On some file systems, copy_file_range returns 0 even if there are more bytes. Only a read
    // shows where the file ends.
    if (n <= 0) {
      return done + detail::copy_by_hand(from, from_offset + done, from_path, to, to_offset + done,
                                         to_path, size - done);
    }
    done += static_cast<std::uint64_t>(n);
  }
  return done;
}

/// The folder that contains `path`; "." for a name without a folder.
inline std::filesystem::path parent_folder(const std::filesystem::path& path) {
  const auto parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

/// Opens a folder.
///
/// @throws io_error  `folder` is not a folder, or this process lacks permission to list it.
inline unique_fd open_folder(const std::filesystem::path& folder) {
  return open_read_only(folder, O_DIRECTORY);
}

/// Makes the names in a folder durable. A rename or unlink survives power loss only after this
/// call.
///
/// @throws io_error  fsync fails.
inline void sync_folder(const unique_fd& fd, const std::filesystem::path& folder) {
  // EINVAL: the file system has no fsync for folders, and so needs none.
  if (uninterrupted([&] { return ::fsync(fd.get()); }) != 0 && errno != EINVAL) {
    throw io_error(folder, "fsync", errno);
  }
}

/// Like the function above, for a folder given by name.
///
/// @throws io_error  the folder cannot be opened or synced.
inline void sync_folder(const std::filesystem::path& folder) {
  sync_folder(open_folder(folder), folder);
}

/// Returns true if an errno means that a path names nothing: the file does not exist, or a file
/// stands where the path needs a folder. Any other errno means only that the path could not be
/// checked.
inline bool is_absent(int code) noexcept {
  return code == ENOENT || code == ENOTDIR;
}

enum class links : std::uint8_t { are_followed, are_not_followed };

/// The status of the file that `path` names; nullopt if there is no file.
///
/// @throws io_error  the status cannot be read, e.g. EACCES, EIO, ESTALE.
inline std::optional<struct ::stat> status_if_there(const std::filesystem::path& path,
                                                    links how = links::are_followed) {
  struct ::stat status {};
  const bool follows = how == links::are_followed;
  const int result = follows ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status);
  if (result == 0) return status;
  if (!is_absent(errno)) throw io_error(path, follows ? "stat" : "lstat", errno);
  return std::nullopt;
}

/// True if `path` names a file of any kind. If links are followed, a link to an absent file does
/// not count.
///
/// @throws io_error  as `status_if_there`
inline bool is_there(const std::filesystem::path& path, links how = links::are_followed) {
  return status_if_there(path, how).has_value();
}

/// True if `path` names a regular file, or a link to one.
///
/// @throws io_error  as `status_if_there`
inline bool is_file(const std::filesystem::path& path) {
  const auto status = status_if_there(path);
  return status && S_ISREG(status->st_mode);
}

/// True if `path` names a folder, or a link to one.
///
/// @throws io_error  as `status_if_there`
inline bool is_folder(const std::filesystem::path& path) {
  const auto status = status_if_there(path);
  return status && S_ISDIR(status->st_mode);
}

/// True if `path` still names the file that is open as `fd`. Does not follow a link at `path`.
///
/// @throws io_error  fstat fails, or as `status_if_there`
inline bool is_named(const unique_fd& fd, const std::filesystem::path& path) {
  struct ::stat mine {};
  if (::fstat(fd.get(), &mine) != 0) throw io_error(path, "fstat", errno);
  const auto named = status_if_there(path, links::are_not_followed);
  return named && mine.st_dev == named->st_dev && mine.st_ino == named->st_ino;
}

/// Removes a file if it exists.
///
/// @return true if it existed
/// @throws io_error  unlink fails for any reason but ENOENT.
inline bool remove_if_exists(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) == 0) return true;
  if (errno != ENOENT) throw io_error(path, "unlink", errno);
  return false;
}

}  // namespace millrace::io
