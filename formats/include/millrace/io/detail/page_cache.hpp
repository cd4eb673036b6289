// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::io {

/// What the kernel should do with the cached pages of a file after a read or write.
enum class page_cache : std::uint8_t {
  keep,
  /// Drop the pages once they are on the disk. Then data that is read or written only once does not
  /// evict pages that other programs need. From Linux 6.14 on, some file systems drop the pages by
  /// themselves, and keep pages that were cached before. On other systems, each read or write is
  /// followed by drop_read() or drop_written(), which also drop pages that were cached before. So
  /// call pages_for_reading() (residency.hpp) before you read a file with `pass_through`.
  pass_through,
};

/// Drops the cached pages of bytes that were read, and of the 4 MiB before these bytes. The reason:
/// the kernel caches up to 2 MiB as one unit, and drops only units that are completely inside the
/// range. Like drop_written() and drop_synced(), this function only advises the kernel. It never
/// fails, and it does not change `errno`.
inline void drop_read(const unique_fd& fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t back = std::uint64_t{4} << 20;
  const int code = errno;
  const std::uint64_t first = offset < back ? 0 : offset - back;
  (void)::posix_fadvise(fd.get(), static_cast<::off_t>(first),
                        static_cast<::off_t>(offset + bytes - first), POSIX_FADV_DONTNEED);
  errno = code;
}

/// Makes the kernel start to write bytes to the disk, and drops the pages that are already on the
/// disk. Acts only when a write reaches the next multiple of 16 MiB. Then it acts on the 256 MiB
/// before the end of that write. It does not wait for the disk. So if a slow disk has not written a
/// page by then, the page remains cached.
inline void drop_written(const unique_fd& fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t period = std::uint64_t{16} << 20;
  constexpr std::uint64_t window = std::uint64_t{256} << 20;
  const std::uint64_t end = offset + bytes;
  if (offset / period == end / period) return;
  const int code = errno;
  const std::uint64_t first = end < window ? 0 : end - window;
  (void)::sync_file_range(fd.get(), static_cast<::off_t>(first), static_cast<::off_t>(end - first),
                          SYNC_FILE_RANGE_WRITE);
  (void)::posix_fadvise(fd.get(), static_cast<::off_t>(first), static_cast<::off_t>(end - first),
                        POSIX_FADV_DONTNEED);
  errno = code;
}

/// Drops all cached pages of a file that are already on the disk. After an fsync, these are all of
/// its cached pages.
inline void drop_synced(const unique_fd& fd) noexcept {
  const int code = errno;
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  errno = code;
}

namespace detail {

/// RWF_DONTCACHE, which older C libraries do not define.
inline constexpr int dont_cache = 0x80;

/// The devices (st_dev) whose file systems refused a request. The request is not repeated for them.
/// Thread-safe. Devices are never removed. Once the list holds `most` devices, no device is added.
class refused_devices {
 public:
  static constexpr std::size_t most = 32;

  /// True if the list contains any device. Callers check this first, because has() needs a device,
  /// and getting one takes a system call.
  bool any() const noexcept { return marks_[0].load(std::memory_order_relaxed) != 0; }

  bool has(std::uint64_t device) const noexcept {
    for (const auto& each : marks_) {
      const std::uint64_t mark = each.load(std::memory_order_relaxed);
      if (mark == 0) return false;
      if (mark == device + 1) return true;
    }
    return false;
  }

  void add(std::uint64_t device) noexcept {
    for (auto& each : marks_) {
      std::uint64_t mark = 0;
      if (each.compare_exchange_strong(mark, device + 1, std::memory_order_relaxed)) return;
      if (mark == device + 1) return;
    }
  }

 private:
  std::array<std::atomic<std::uint64_t>, most> marks_{};  // device + 1; 0 after the last device
};

/// Calls `transfer(flags)`, which reads or writes `fd`. For `pass_through`, passes the flag
/// `dont_cache`. If the file system refuses the flag, in this call or in an earlier one, calls
/// `transfer(0)` instead, and then `drop(bytes)` for the transferred bytes.
///
/// @param refused  devices that refused the flag in earlier calls; a refusal adds a device
template <class Transfer, class Drop>
::ssize_t with_page_cache(const unique_fd& fd, page_cache pages, Transfer transfer, Drop drop,
                          refused_devices& refused) {
  const auto plainly = [&] {
    const ::ssize_t n = uninterrupted([&] { return transfer(0); });
    if (n > 0 && pages == page_cache::pass_through) drop(static_cast<std::uint64_t>(n));
    return n;
  };
  if (pages == page_cache::keep) return plainly();
  struct ::stat status {};
  if (refused.any() && ::fstat(fd.get(), &status) == 0 && refused.has(status.st_dev)) {
    return plainly();
  }
  ::ssize_t n = uninterrupted([&] { return transfer(dont_cache); });
  if (n >= 0 || (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS)) return n;
  n = plainly();
  const int code = errno;
  // If the call fails without the flag, too, its error has another cause. So do not record a
  // refusal.
  if (n >= 0 && ::fstat(fd.get(), &status) == 0) refused.add(status.st_dev);
  errno = code;
  return n;
}

/// Like the function above, with a list of devices that exists as long as the process. Each
/// instantiation has its own list, so refusals are recorded separately for reads and for writes.
template <class Transfer, class Drop>
::ssize_t with_page_cache(const unique_fd& fd, page_cache pages, Transfer transfer, Drop drop) {
  static refused_devices refused;
  return with_page_cache(fd, pages, transfer, drop, refused);
}

}  // namespace detail
}  // namespace millrace::io
