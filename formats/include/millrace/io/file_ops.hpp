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
#include <millrace/io/page_cache.hpp>
#include <millrace/io/unique_fd.hpp>

/// Whole reads and writes over descriptors: EINTR and short transfers end here.
namespace millrace::io {

/// Writes all of `bytes` at `offset`. Safe from several threads on one descriptor.
///
/// @throws io_error  e.g. ENOSPC, EFBIG, EIO; an unknown part of the bytes may be written.
inline void pwrite_all(const unique_fd& fd, std::span<const std::byte> bytes, std::uint64_t offset,
                       const std::filesystem::path& path, page_cache pages = page_cache::keep) {
  while (!bytes.empty()) {
    const auto write = [&](int flags) {
      const auto at = static_cast<::off_t>(offset);
      // To the calls with flags an offset of -1 is the file's own, not a wrong one.
      if (flags == 0 || at < 0) return ::pwrite(fd.get(), bytes.data(), bytes.size(), at);
      const ::iovec part{const_cast<std::byte*>(bytes.data()),
                         bytes.size()};  // NOLINT: older than const
      return ::pwritev2(fd.get(), &part, 1, at, flags);
    };
    const ::ssize_t n = detail::with_page_cache(
        fd, pages, write, [&](std::uint64_t done) { drop_written(fd, offset, done); });
    if (n < 0) throw io_error(path, "write", errno);
    if (n == 0) throw io_error(path, "write (nothing was taken)", EIO);  // else an endless loop
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

/// Reads what one call gives.
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
/// @return bytes read; less than `out.size()` only at the end of the file.
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

/// Whether copy_file_range cannot copy between just these two files, and read and write can.
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

/// Copies `size` bytes from one file into another: by the kernel, which on some file systems has
/// the two share them, or else through a buffer of 1 MiB.
///
/// @return bytes copied; less than `size` only where `from` ends.
/// @throws io_error  e.g. ENOSPC, EIO; an unknown part of the bytes may be written.
inline std::uint64_t copy_range(const unique_fd& from, std::uint64_t from_offset,
                                const std::filesystem::path& from_path, const unique_fd& to,
                                std::uint64_t to_offset, const std::filesystem::path& to_path,
                                std::uint64_t size) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30;  // at once, so that signals come through
  std::uint64_t done = 0;
  while (done < size) {
    auto in = static_cast<::off_t>(from_offset + done);
    auto out = static_cast<::off_t>(to_offset + done);
    const ::ssize_t n = uninterrupted([&] {
      return ::copy_file_range(from.get(), &in, to.get(), &out, std::min(most, size - done), 0);
    });
    if (n < 0 && !detail::must_pass_through(errno)) throw io_error(to_path, "copy", errno);
    // Some file systems say 0 of files that they do have bytes of: a read tells the end for sure.
    if (n <= 0) {
      return done + detail::copy_by_hand(from, from_offset + done, from_path, to, to_offset + done,
                                         to_path, size - done);
    }
    done += static_cast<std::uint64_t>(n);
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

/// Whether an errno says that nothing has this name: no such file, or a folder of its path is a
/// file. Any other errno says only that the path could not be looked at.
inline bool is_absent(int code) noexcept {
  return code == ENOENT || code == ENOTDIR;
}

enum class links : std::uint8_t { are_followed, are_not_followed };

/// What `path` names; nothing if that is absent.
///
/// @throws io_error  the kernel does not say, e.g. EACCES, EIO, ESTALE.
inline std::optional<struct ::stat> status_if_there(const std::filesystem::path& path,
                                                    links how = links::are_followed) {
  struct ::stat status {};
  const bool follows = how == links::are_followed;
  const int result = follows ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status);
  if (result == 0) return status;
  if (!is_absent(errno)) throw io_error(path, follows ? "stat" : "lstat", errno);
  return std::nullopt;
}

/// Whether `path` names anything. A link to an absent file names nothing, unless links are not
/// followed.
///
/// @throws io_error  as status_if_there
inline bool is_there(const std::filesystem::path& path, links how = links::are_followed) {
  return status_if_there(path, how).has_value();
}

/// Whether `path` names a regular file, or a link to one.
///
/// @throws io_error  as status_if_there
inline bool is_file(const std::filesystem::path& path) {
  const auto status = status_if_there(path);
  return status && S_ISREG(status->st_mode);
}

/// Whether `path` names a folder, or a link to one.
///
/// @throws io_error  as status_if_there
inline bool is_folder(const std::filesystem::path& path) {
  const auto status = status_if_there(path);
  return status && S_ISDIR(status->st_mode);
}

/// Whether the file that `fd` has open still has the name `path`; a link is not followed.
///
/// @throws io_error  the kernel does not say.
inline bool is_named(const unique_fd& fd, const std::filesystem::path& path) {
  struct ::stat mine {};
  if (::fstat(fd.get(), &mine) != 0) throw io_error(path, "fstat", errno);
  const auto named = status_if_there(path, links::are_not_followed);
  return named && mine.st_dev == named->st_dev && mine.st_ino == named->st_ino;
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
