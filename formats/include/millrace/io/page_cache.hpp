// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <millrace/io/unique_fd.hpp>

namespace millrace::io {

/// What the kernel is to do with the pages of a file after a read or write.
enum class page_cache : std::uint8_t {
  keep,
  /// Let them go once they are on the disk, unless they were there before: what is read or written
  /// only once must not push out what others need. Linux 6.14 and later, on some file systems; as
  /// `keep` elsewhere.
  pass_through,
};

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
/// where the file system is known to refuse that, or does so now.
///
/// @param refused  those known; told of another
template <class Transfer>
::ssize_t with_page_cache(const unique_fd& fd, page_cache pages, Transfer transfer,
                          refused_devices& refused) {
  const auto plainly = [&] { return uninterrupted([&] { return transfer(0); }); };
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
template <class Transfer>
::ssize_t with_page_cache(const unique_fd& fd, page_cache pages, Transfer transfer) {
  static refused_devices refused;
  return with_page_cache(fd, pages, transfer, refused);
}

}  // namespace detail
}  // namespace millrace::io
