// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <millrace/io/detail/page_cache.hpp>
#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::io {

/// The share of a file that the page cache holds, and the system call that reported it.
struct residency {
  double share = 0;     ///< share of the queried bytes, 0 to 1
  const char* by = "";  ///< "cachestat" or "mincore"
};

/// Asks cachestat(2), which Linux has from version 6.5 on. Returns nullopt if the kernel lacks the
/// call or refuses it. The kernel answers only the file's owner and users who may write the file.
/// Counts whole pages.
std::optional<residency> ask_cachestat(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

/// Asks mincore(2), by mapping 1 GiB of the range at a time. This takes 0.3 ms per GiB. Returns
/// nullopt if the range cannot be mapped. Also returns nullopt if the user is neither root nor the
/// file's owner: to users without write permission, the kernel reports every page as cached.
std::optional<residency> ask_mincore(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

/// Asks cachestat, then mincore, and returns the first answer. Bytes after the end of the file
/// count as not cached.
inline std::optional<residency> ask_residency(int fd, std::uint64_t offset,
                                              std::uint64_t bytes) noexcept {
  const auto answer = ask_cachestat(fd, offset, bytes);
  return answer ? answer : ask_mincore(fd, offset, bytes);
}

/// Returns only the cached share, 0 to 1; nullopt if neither call answers.
inline std::optional<double> resident_share(int fd, std::uint64_t offset,
                                            std::uint64_t bytes) noexcept {
  const auto answer = ask_residency(fd, offset, bytes);
  return answer ? std::optional(answer->share) : std::nullopt;
}

/// Estimates the cached share of a file from 64 samples: to count all pages of a cached file,
/// cachestat takes 7 to 16 ms per GB. Returns nullopt if resident_share() does.
inline std::optional<double> estimated_share(int fd, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t samples = 64;
  constexpr std::uint64_t sample_bytes = 256 << 10;
  if (bytes <= samples * sample_bytes) return resident_share(fd, 0, bytes);
  const std::uint64_t step = (bytes - sample_bytes) / (samples - 1);
  double sum = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const auto share = resident_share(fd, i * step, sample_bytes);
    if (!share) return std::nullopt;
    sum += *share;
  }
  return sum / samples;
}

/// Returns how to read a file that is read only once. If at least half of the file seems to be
/// cached already, another program seems to need it, so returns `keep`. Otherwise returns
/// `pass_through`.
inline page_cache pages_for_reading(const unique_fd& fd, std::uint64_t bytes) noexcept {
  return estimated_share(fd.get(), bytes).value_or(0) >= 0.5 ? page_cache::keep
                                                             : page_cache::pass_through;
}

// ---------------------------------------------------------------------------------------------

namespace detail {

inline std::uint64_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// The number of pages that [offset, offset + bytes) touches.
inline std::uint64_t pages_of(std::uint64_t offset, std::uint64_t bytes) noexcept {
  return (offset + bytes + page_bytes() - 1) / page_bytes() - offset / page_bytes();
}

}  // namespace detail

inline std::optional<residency> ask_cachestat(int fd, std::uint64_t offset,
                                              std::uint64_t bytes) noexcept {
  // The system call and its structs are those of linux/mman.h, which older C libraries lack. The
  // number of the call is the same on all processors.
  constexpr long call = 451;
  struct {
    std::uint64_t offset;
    std::uint64_t bytes;
  } range{offset, bytes};
  struct {
    std::uint64_t cached;
    std::uint64_t dirty;
    std::uint64_t writeback;
    std::uint64_t evicted;
    std::uint64_t recently_evicted;
  } pages{};
  if (bytes == 0) return residency{1, "cachestat"};  // 0 would mean: to the end of the file
  if (::syscall(call, fd, &range, &pages, 0U) != 0) return std::nullopt;
  const auto all = static_cast<double>(detail::pages_of(offset, bytes));
  return residency{std::min(static_cast<double>(pages.cached) / all, 1.0), "cachestat"};
}

inline std::optional<residency> ask_mincore(int fd, std::uint64_t offset,
                                            std::uint64_t bytes) noexcept try {
  if (bytes == 0) return residency{1, "mincore"};
  struct ::stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const ::uid_t user = ::geteuid();
  if (user != 0 && user != status.st_uid) return std::nullopt;
  const std::uint64_t page = detail::page_bytes();
  const std::uint64_t asked = detail::pages_of(offset, bytes);
  const std::uint64_t end = std::min(offset + bytes, static_cast<std::uint64_t>(status.st_size));
  constexpr std::uint64_t most = std::uint64_t{1} << 30;
  std::vector<unsigned char> there;
  std::uint64_t found = 0;
  for (std::uint64_t at = offset / page * page; at < end;) {
    const std::uint64_t part = std::min(most, end - at);
    void* const map = ::mmap(nullptr, part, PROT_READ, MAP_SHARED, fd, static_cast<::off_t>(at));
    if (map == MAP_FAILED) return std::nullopt;
    there.resize((part + page - 1) / page);
    const bool told = ::mincore(map, part, there.data()) == 0;
    (void)::munmap(map, part);
    if (!told) return std::nullopt;
    for (const unsigned char c : there) found += c & 1U;
    at += part;
  }
  return residency{static_cast<double>(found) / static_cast<double>(asked), "mincore"};
} catch (...) {  // out of memory
  return std::nullopt;
}

}  // namespace millrace::io
