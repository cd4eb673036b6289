// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <utility>

#include <millrace/detail/export.hpp>
#include <millrace/io/file_ops.hpp>

// Example:
//
//     millrace::io::atomic_file file("state.json");
//     file.append(std::as_bytes(std::span("{}", 2)));
//     file.commit();  // now state.json exists, complete and durable

namespace millrace::io {

/// Another writer holds the lock on a partial file. The code of this error is EWOULDBLOCK. Catch
/// this type instead of comparing the code: on Linux, EWOULDBLOCK equals EAGAIN, which a failed
/// write can report too.
class MILLRACE_EXPORT file_busy : public io_error {
 public:
  using io_error::io_error;
};

/// A file that appears under its name only after it is complete.
///
/// Bytes go to `PATH.partial` in the same folder. `commit()` makes them durable and renames the
/// partial file to PATH. Without a commit, the destructor removes the partial file, unless `keep()`
/// was called. After SIGKILL, the partial file remains, but its name shows that it is not finished.
/// The next writer of the same path empties or resumes it.
///
/// If the file system has advisory locks, a lock on the partial file ensures that a path has only
/// one writer at a time. The lock is released when the process ends, even if it is killed.
///
/// If PATH is a symbolic link, the file replaces the link, not its target. A moved-from or
/// committed object owns nothing. Use an object from one thread at a time. Only
/// `pwrite_all(file.fd(), ...)` may be called from many threads at once.
class atomic_file {
 public:
  enum class start : std::uint8_t {
    afresh,  ///< empty the file, even if an earlier writer left bytes in it
    go_on,   ///< keep the bytes of an earlier writer; implies `keep()`
  };

  /// Opens and locks the partial file. Immediately checks for conditions that would make `commit()`
  /// fail, so that the caller learns of them before it writes.
  ///
  /// @throws file_busy  another writer holds the lock.
  /// @throws io_error   the folder or the partial file cannot be opened; `path` names something
  ///                    that is not a regular file (EISDIR, EINVAL); the partial file has a second
  ///                    hard link (EMLINK).
  explicit atomic_file(std::filesystem::path path, start how = start::afresh);

  atomic_file(atomic_file&&) = default;
  atomic_file& operator=(atomic_file&&) = delete;
  ~atomic_file() { discard(); }

  const std::filesystem::path& path() const noexcept { return path_; }
  const std::filesystem::path& partial_path() const noexcept { return partial_; }
  const unique_fd& fd() const noexcept { return fd_; }

  /// Number of bytes appended so far. The next `append` writes at this offset.
  std::uint64_t size_bytes() const noexcept { return size_; }

  /// @throws io_error  e.g. ENOSPC. Bytes appended before are not affected.
  void append(std::span<const std::byte> bytes, page_cache pages = page_cache::keep) {
    pwrite_all(fd_, bytes, size_, partial_, pages);
    size_ += bytes.size();
  }

  /// Reserves `bytes` bytes of disk space, starting `after` bytes past the end of the file. So a
  /// full disk is noticed early. Does nothing if the file system cannot reserve space.
  ///
  /// @throws io_error  fallocate fails, e.g. with ENOSPC.
  void reserve(std::uint64_t bytes, std::uint64_t after = 0);

  /// Truncates or extends the file to `size` bytes. Bytes and reserved space beyond `size` are
  /// dropped. New bytes are zero.
  ///
  /// @throws io_error  ftruncate fails, e.g. because the file would be too large.
  void resize(std::uint64_t size);

  /// Makes the destructor and a failed sync() leave the partial file for a later writer.
  void keep() noexcept { keep_ = true; }

  /// Undoes keep(): makes the destructor and a failed sync() remove the partial file again.
  void forget() noexcept { keep_ = false; }

  /// Makes the contents durable under the partial name. `commit()` does this too. Call sync() first
  /// if several files must all be durable before any of them is renamed.
  ///
  /// @pre not committed, not moved from
  /// @throws io_error  fsync fails. The partial file is removed, unless `keep()` was called. Do not
  ///                   use the object after this: a second fsync would report success even for
  ///                   pages that the first fsync lost.
  void sync();

  /// Syncs the file, renames it to `path()` and syncs the folder. After this, the object owns
  /// nothing.
  ///
  /// @pre not committed, not moved from
  /// @throws io_error  a step failed. If the failed step is the sync of the folder, the complete
  ///                   file is at `path()`, but may not survive power loss. Otherwise, `path()` is
  ///                   unchanged.
  void commit();

 private:
  void discard() noexcept;
  bool owns_partial_name() const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  unique_fd folder_;  // opened early, because commit() might find no free descriptor
  unique_fd fd_;      // holds the lock; empty if there is nothing to remove
  std::uint64_t size_ = 0;
  bool keep_ = false;
};

/// Removes the partial files of `paths` that a killed writer left behind.
///
/// The lock on the partial file of `paths.front()` protects all of the partial files. So a writer
/// of these files must open the `atomic_file` of `paths.front()` first, and commit or destroy it
/// last. Removes nothing if that partial file is absent, if a writer holds its lock, or if the file
/// system has no locks. Stops without an error if this process lacks permission to open or remove a
/// partial file.
///
/// @pre !paths.empty()
/// @throws io_error  a partial file exists and cannot be opened or removed, for a reason other than
///                   a lack of permission.
void remove_stale_partials(std::span<const std::filesystem::path> paths);

// ---------------------------------------------------------------------------------------------

inline atomic_file::atomic_file(std::filesystem::path path, start how) : path_(std::move(path)) {
  partial_ = path_;
  partial_ += ".partial";
  folder_ = open_folder(parent_folder(path_));
  if (!path_.has_filename()) throw io_error(path_, "open", EISDIR);
  const auto there = status_if_there(path_);
  if (there && !S_ISREG(there->st_mode)) {
    if (S_ISDIR(there->st_mode)) throw io_error(path_, "open", EISDIR);
    throw io_error(path_, "open (not a regular file)", EINVAL);
  }
  for (int attempt = 0;; ++attempt) {
    // O_NOFOLLOW, because a link could lead to any other file of the user, which would then be
    // emptied.
    fd_ = unique_fd(uninterrupted(
        [&] { return ::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666); }));
    if (!fd_) throw io_error(partial_, "open", errno);
    const auto lock = [&] { return ::flock(fd_.get(), LOCK_EX | LOCK_NB); };
    if (uninterrupted(lock) != 0 && errno == EWOULDBLOCK) {
      throw file_busy(partial_, "flock (is another process writing it?)", EWOULDBLOCK);
    }
    // Between open and flock, the previous owner may have renamed or removed this inode. In that
    // case, the lock protects nothing, and the inode may be the finished file. So open the name
    // again.
    if (owns_partial_name()) break;
    if (attempt == 100) throw io_error(partial_, "open (the name keeps changing)", EBUSY);
  }
  struct ::stat mine {};
  if (::fstat(fd_.get(), &mine) != 0) throw io_error(partial_, "fstat", errno);
  if (mine.st_nlink > 1) {
    fd_.reset();  // the file is not ours to remove
    throw io_error(partial_, "open (the file has another name, and would be emptied)", EMLINK);
  }
  if (how == start::go_on) {
    size_ = static_cast<std::uint64_t>(mine.st_size);
    keep_ = true;  // if this writer fails to resume, it must leave the file for a writer that can
  } else {
    resize(0);
  }
}

inline void atomic_file::resize(std::uint64_t size) {
  if (uninterrupted([&] { return ::ftruncate(fd_.get(), static_cast<::off_t>(size)); }) != 0) {
    throw io_error(partial_, "ftruncate", errno);
  }
  size_ = size;
}

inline void atomic_file::reserve(std::uint64_t bytes, std::uint64_t after) {
  if (bytes == 0) return;
  const int result = uninterrupted([&] {
    return ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<::off_t>(size_ + after),
                       static_cast<::off_t>(bytes));
  });
  if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) {
    throw io_error(partial_, "fallocate", errno);
  }
}

inline void atomic_file::sync() {
  assert(fd_);
  if (uninterrupted([&] { return ::fsync(fd_.get()); }) != 0) {
    const int code = errno;
    if (!keep_) discard();  // if kept, do not close it: another thread may be appending
    throw io_error(partial_, "fsync", code);
  }
}

inline void atomic_file::commit() {
  sync();
  // rename() finds the file by name. If somebody replaced our partial file, rename() would publish
  // the replacement.
  if (!owns_partial_name()) throw io_error(partial_, "rename (the file was replaced)", ESTALE);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) throw io_error(path_, "rename", errno);
  fd_.reset();
  const unique_fd folder = std::move(folder_);
  sync_folder(folder, parent_folder(path_));
}

/// Removes the partial file while the lock is still held, then releases the lock.
inline void atomic_file::discard() noexcept {
  try {
    if (fd_ && !keep_ && owns_partial_name()) (void)::unlink(partial_.c_str());
  } catch (const std::exception&) {
    // The file may belong to another writer, so leave it in place, as after SIGKILL.
  }
  fd_.reset();
}

inline bool atomic_file::owns_partial_name() const {
  return is_named(fd_, partial_);
}

inline void remove_stale_partials(std::span<const std::filesystem::path> paths) {
  assert(!paths.empty());
  const auto partial_of = [](std::filesystem::path path) { return path += ".partial"; };
  const auto may_not = [](int code) { return code == EACCES || code == EPERM || code == EROFS; };
  const auto first = partial_of(paths.front());
  const unique_fd fd(uninterrupted(
      [&] { return ::open(first.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); }));
  if (!fd) {
    if (is_absent(errno) || may_not(errno)) return;
    throw io_error(first, "open", errno);
  }
  if (uninterrupted([&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) != 0) return;
  // If the writer renamed or removed the file between open and flock, the lock protects nothing.
  if (!is_named(fd, first)) return;
  // Remove the first file last: as long as it exists, a later call can remove the others.
  for (std::size_t i = paths.size(); i-- > 0;) {
    try {
      (void)remove_if_exists(partial_of(paths[i]));
    } catch (const io_error& e) {
      if (may_not(e.code())) return;
      throw;
    }
  }
}

}  // namespace millrace::io
