// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <millrace/io/residency.hpp>
#include <millrace/io/unique_fd.hpp>

namespace millrace::io {

/// What the kernel is to do with the pages of a file after a read or write.
enum class page_cache : std::uint8_t {
  keep,
  /// Let them go once they are on the disk: what is read or written only once must not push out
  /// what others need. From Linux 6.14 on some file systems know to, and spare what was there
  /// before. Elsewhere `drop_read` and `drop_written` follow, which do not: `pages_for_reading`
  /// says whether a file is to be read so.
  pass_through,
};

/// Lets the pages of bytes go that were read, and of the 4 MiB before them: the kernel brings in up
/// to 2 MiB as one, and lets go of that only where a range has all of it. Advice, like the next:
/// nothing fails, `errno` stays.
inline void drop_read(const unique_fd& fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t back = std::uint64_t{4} << 20;
  const int code = errno;
  const std::uint64_t first = offset < back ? 0 : offset - back;
  (void)::posix_fadvise(fd.get(), static_cast<::off_t>(first),
                        static_cast<::off_t>(offset + bytes - first), POSIX_FADV_DONTNEED);
  errno = code;
}

/// Has bytes that were written put on their way to the disk, and lets those before them go that are
/// there by now: every 16 MiB of the file, the last 256 MiB. It waits for no disk, so that what a
/// slow one has not taken by then stays.
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

/// Lets all pages of a file go that are on the disk: after an fsync, all.
inline void drop_synced(const unique_fd& fd) noexcept {
  const int code = errno;
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  errno = code;
}

/// For a file that is read once: `pass_through`, but where half of it is in memory already, as that
/// of somebody who needs it.
inline page_cache pages_for_reading(const unique_fd& fd, std::uint64_t bytes) noexcept {
  const std::optional<double> there = resident_share(fd.get(), 0, bytes);
  return there && *there >= 0.5 ? page_cache::keep : page_cache::pass_through;
}

namespace detail {

/// RWF_DONTCACHE, which C libraries older than the kernel do not name.
inline constexpr int dont_cache = 0x80;

/// The devices (st_dev) whose file systems refused something, so that they are not asked each time.
/// Any thread. Nothing is ever taken out; of devices beyond `most`, none is kept.
class refused_devices {
 public:
  static constexpr std::size_t most = 32;

  /// Costs no system call; whoever has a device to ask for needed one.
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
  std::array<std::atomic<std::uint64_t>, most> marks_{};  // the device + 1; 0 behind the last
};

/// Calls `transfer(flags)`, which reads or writes `fd`: with the flag for `pages`, and without it
/// where the file system is known to refuse that, or does so now; then `drop(bytes)` of what was
/// transferred.
///
/// @param refused  those known; told of another
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
  // What fails without the flag, too, says nothing of the file system.
  if (n >= 0 && ::fstat(fd.get(), &status) == 0) refused.add(status.st_dev);
  errno = code;
  return n;
}

/// As above, with what all of the process has found out.
template <class Transfer, class Drop>
::ssize_t with_page_cache(const unique_fd& fd, page_cache pages, Transfer transfer, Drop drop) {
  static refused_devices refused;
  return with_page_cache(fd, pages, transfer, drop, refused);
}

}  // namespace detail
}  // namespace millrace::io
