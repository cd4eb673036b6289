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

#include <millrace/export.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::io {

/// Another writer holds the lock on a partial file. Its code is EWOULDBLOCK. Catch this type, and
/// do not compare the code: on Linux it is EAGAIN as well, which a failing write may report.
class MILLRACE_EXPORT file_busy : public io_error {
 public:
  using io_error::io_error;
};

/// A file that appears under its name whole, or not at all.
///
/// Bytes go to `PATH.partial` in the same folder. `commit()` makes them durable and renames; a
/// destructor without it removes the partial file, unless `keep()` was called. After SIGKILL the
/// partial file stays, is never taken for the real one, and the next writer of the same path starts
/// it afresh, or goes on with it.
///
/// An advisory lock on the partial file keeps two writers of one path apart, on file systems that
/// have such locks; it ends with the process, however that ends. A symbolic link at PATH is
/// replaced by the file, not followed. A moved-from or committed object
/// owns nothing. Use from one thread; `pwrite_all(file.fd(), ...)` from many.
class atomic_file {
 public:
  enum class start : std::uint8_t {
    afresh,  ///< empty, whatever an earlier writer left
    go_on,   ///< with what is there; `size_bytes()` says how much. Kept from the start on
  };

  /// What would make `commit()` fail is looked for here, before the work and not after it.
  ///
  /// @throws file_busy  somebody else is writing it.
  /// @throws io_error   the folder does not exist or refuses; the path names something that is not
  ///                    a regular file (EISDIR, EINVAL); the partial file has a second name, a hard
  ///                    link (EMLINK).
  explicit atomic_file(std::filesystem::path path, start how = start::afresh);

  atomic_file(atomic_file&&) = default;
  atomic_file& operator=(atomic_file&&) = delete;
  ~atomic_file() { discard(); }

  const std::filesystem::path& path() const noexcept { return path_; }
  const std::filesystem::path& partial_path() const noexcept { return partial_; }
  const unique_fd& fd() const noexcept { return fd_; }

  /// Bytes appended so far, where the next `append` writes.
  std::uint64_t size_bytes() const noexcept { return size_; }

  /// @throws io_error  e.g. ENOSPC; what was appended before is unharmed.
  void append(std::span<const std::byte> bytes, page_cache pages = page_cache::keep) {
    pwrite_all(fd_, bytes, size_, partial_, pages);
    size_ += bytes.size();
  }

  /// Sets `bytes` aside on the disk, `after` bytes after the end, so that a full disk is known now.
  /// Does nothing on a file system that cannot.
  /// @throws io_error  ENOSPC above all
  void reserve(std::uint64_t bytes, std::uint64_t after = 0);

  /// Makes the file `size` bytes long. Bytes after that, and space reserved there, are dropped; new
  /// bytes are zero.
  ///
  /// @throws io_error  the file cannot become so large, or the write failed.
  void resize(std::uint64_t size);

  /// From now on the destructor leaves the partial file for a later writer, and so does a sync()
  /// that fails.
  void keep() noexcept { keep_ = true; }

  /// The destructor removes the partial file again.
  void forget() noexcept { keep_ = false; }

  /// Makes the contents durable under the partial name. Every `commit` includes it; call it
  /// before, when several files must all be safe before the first is renamed.
  ///
  /// @pre not committed, not moved from
  /// @throws io_error  the kernel could not write them. The partial file is removed, or kept and
  ///                   not to be used further: a second fsync would report success for pages that
  ///                   the first one lost.
  void sync();

  /// fsync, rename over `path()`, fsync of the folder. The object owns nothing afterwards.
  ///
  /// @pre not committed, not moved from
  /// @throws io_error  a step failed. Before the rename, nothing shows under `path()`; if only the
  ///                   last step failed, the file is there whole, but may not survive power loss.
  void commit();

 private:
  void discard() noexcept;
  bool owns_partial_name() const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  unique_fd folder_;  // opened early, so that a commit needs no descriptor that may not be had
  unique_fd fd_;      // holds the lock; empty once there is nothing left to remove
  std::uint64_t size_ = 0;
  bool keep_ = false;
};

/// Removes the partial files of `paths` that a writer left behind when it was killed.
///
/// The lock on the partial file of `paths.front()` decides for all of them: whoever writes these
/// files must open that `atomic_file` first, and commit or destroy it last. Removes nothing if that
/// partial file is absent or a writer holds it; nor where this process may not remove files, or the
/// file system has no locks.
///
/// @pre !paths.empty()
/// @throws io_error  a partial file is there and cannot be opened or removed.
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
    // Not through a link: it could name, and so empty, any file of ours.
    fd_ = unique_fd(uninterrupted(
        [&] { return ::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666); }));
    if (!fd_) throw io_error(partial_, "open", errno);
    const auto lock = [&] { return ::flock(fd_.get(), LOCK_EX | LOCK_NB); };
    if (uninterrupted(lock) != 0 && errno == EWOULDBLOCK) {
      throw file_busy(partial_, "flock (is another process writing it?)", EWOULDBLOCK);
    }
    // Between open and flock the former owner may have renamed or removed this inode; then the
    // lock guards nothing, and the bytes may be the finished file's: open the name anew.
    if (owns_partial_name()) break;
    if (attempt == 100) throw io_error(partial_, "open (the name keeps changing)", EBUSY);
  }
  struct ::stat mine {};
  if (::fstat(fd_.get(), &mine) != 0) throw io_error(partial_, "fstat", errno);
  if (mine.st_nlink > 1) {
    fd_.reset();  // not ours to remove
    throw io_error(partial_, "open (the file has another name, and would be emptied)", EMLINK);
  }
  if (how == start::go_on) {
    size_ = static_cast<std::uint64_t>(mine.st_size);
    keep_ = true;  // who cannot go on must not take it from who can
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
    if (!keep_) discard();  // if kept, another thread may be appending through the descriptor
    throw io_error(partial_, "fsync", code);
  }
}

inline void atomic_file::commit() {
  sync();
  // A rename goes by name: it would publish what somebody else put there after removing ours.
  if (!owns_partial_name()) throw io_error(partial_, "rename (the file was replaced)", ESTALE);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) throw io_error(path_, "rename", errno);
  fd_.reset();
  const unique_fd folder = std::move(folder_);
  sync_folder(folder, parent_folder(path_));
}

/// Removes the partial file while the lock is still held, then lets go of it.
inline void atomic_file::discard() noexcept {
  try {
    if (fd_ && !keep_ && owns_partial_name()) (void)::unlink(partial_.c_str());
  } catch (const std::exception&) {
    // Whose it is cannot be told, so it stays, as after SIGKILL.
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
  // Between open and flock its writer may have renamed or removed it: then the lock guards nothing.
  if (!is_named(fd, first)) return;
  // The first one last: while it is there, a later call finds the others.
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
