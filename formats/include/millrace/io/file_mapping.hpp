// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_ops.hpp>

// Example:
//
//     const millrace::io::file_mapping file("web_text_document.bin");
//     const std::span<const std::byte> bytes = file.bytes();  // valid as long as `file` lives

namespace millrace::io {

/// Identifies a file independently of its name. No two files of a machine have the same identity at
/// the same time. While a file is open or mapped, no other file gets its identity.
struct file_identity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const file_identity&) const = default;
};

/// The identity of the file to which `path` refers now. Follows symbolic links. Returns nullopt if
/// there is no such file.
///
/// @throws io_error  stat fails for any reason but ENOENT, e.g. EACCES.
inline std::optional<file_identity> identity_of(const std::filesystem::path& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) == 0) return file_identity{status.st_dev, status.st_ino};
  if (errno != ENOENT) throw io_error(path, "stat", errno);
  return std::nullopt;
}

namespace detail {

struct region {
  void* address = nullptr;
  std::size_t size_bytes = 0;
  bool operator==(const region&) const = default;
};
inline void unmap(const region& r) noexcept {
  (void)::munmap(r.address, r.size_bytes);
}
using unique_region = unique_handle<region, region{}, unmap>;

}  // namespace detail

/// A whole regular file, mapped read-only. Moving the object does not move the mapped bytes. Any
/// number of threads may read them at once.
///
/// An empty file gives an empty span. The file must not shrink while it is mapped: an access to a
/// lost page raises SIGBUS and does not throw. Writers in this project never shrink a finished
/// file; they rename a new file into place.
class file_mapping {
 public:
  file_mapping() = default;

  /// Maps the file at `path`.
  ///
  /// @throws io_error  `path` cannot be opened or mapped, or is not a regular file.
  explicit file_mapping(const std::filesystem::path& path)
      : file_mapping(path, [&](const unique_fd&, std::uint64_t) -> detail::region {
          throw io_error(path, "mmap", errno);
        }) {}

  /// Maps the file at `path`. If the file system or a system limit does not allow the mapping,
  /// reads the bytes into memory instead. Use it for files that are small or needed only briefly.
  ///
  /// @throws io_error  `path` cannot be opened or read, or is not a regular file; a copy needs more
  ///                   memory than there is (ENOMEM); the file shrinks while it is read (ESTALE).
  static file_mapping or_copy(const std::filesystem::path& path) {
    bool copied = false;
    file_mapping made(path, [&](const unique_fd& fd, std::uint64_t size) {
      copied = true;
      return copy(fd, size, path);
    });
    made.is_copy_ = copied;
    return made;
  }

  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(region_.get().address), region_.get().size_bytes};
  }

  /// Frees the memory of the mapped pages; the next access reads them again. To keep memory use
  /// small in a single pass over a large file, call this function repeatedly. Does nothing for a
  /// copy.
  void let_go() const noexcept {
    const detail::region& r = region_.get();
    if (r.address == nullptr || is_copy_) return;
    (void)::madvise(r.address, r.size_bytes, MADV_DONTNEED);
  }

  /// The identity of the mapped file, even if its path now refers to another file. An empty file is
  /// not kept open, so another file may have the same identity by now.
  file_identity identity() const noexcept { return identity_; }

 private:
  /// @param refused  called if mmap refuses; throws, or returns the region to use instead
  template <class Refused>
  file_mapping(const std::filesystem::path& path, const Refused& refused) {
    // The descriptor is closed on return, because the mapping keeps the file open.
    // O_NONBLOCK: does not wait for a FIFO's writer.
    const unique_fd fd = open_read_only(path, O_NONBLOCK);
    const std::uint64_t size = regular_file_size(fd, path);
    struct ::stat status {};
    if (::fstat(fd.get(), &status) != 0) throw io_error(path, "fstat", errno);
    identity_ = {status.st_dev, status.st_ino};
    if (size == 0) return;  // mmap refuses length 0, so an empty file owns no region
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
    region_ = detail::unique_region(address == MAP_FAILED ? refused(fd, size)
                                                          : detail::region{address, size});
  }

  static detail::region copy(const unique_fd& fd, std::uint64_t size,
                             const std::filesystem::path& path) {
    void* address =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) throw io_error(path, "mmap of memory for a copy", errno);
    detail::unique_region owned({address, size});
    const std::span out(static_cast<std::byte*>(address), size);
    if (pread_some(fd, out, 0, path) != size)
      throw io_error(path, "read (the file became shorter)", ESTALE);
    return owned.release();
  }

  detail::unique_region region_;
  file_identity identity_;
  bool is_copy_ = false;
};

}  // namespace millrace::io
