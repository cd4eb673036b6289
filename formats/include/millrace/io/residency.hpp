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

namespace millrace::io {

/// How much of a file the page cache holds, and which system call said so.
struct residency {
  double share = 0;     ///< of the bytes asked about, 0 to 1
  const char* by = "";  ///< "cachestat" or "mincore"
};

/// Asks cachestat(2), of Linux 6.5. Nothing where the kernel has none or does not tell: it tells
/// those who may write the file, and its owner. Pages count whole.
std::optional<residency> ask_cachestat(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

/// Asks mincore(2), by mapping the range, 1 GiB of it at a time: 0.3 ms a GiB. Nothing where it
/// cannot be mapped, or where the kernel would say of everything that it is there, as it does to
/// those who may not write the file.
std::optional<residency> ask_mincore(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

/// The first of the two that answers. Bytes behind the end of the file are not there, and count.
inline std::optional<residency> ask_residency(int fd, std::uint64_t offset,
                                              std::uint64_t bytes) noexcept {
  const auto answer = ask_cachestat(fd, offset, bytes);
  return answer ? answer : ask_mincore(fd, offset, bytes);
}

/// The share alone, 0 to 1, or nothing where nobody tells.
inline std::optional<double> resident_share(int fd, std::uint64_t offset,
                                            std::uint64_t bytes) noexcept {
  const auto answer = ask_residency(fd, offset, bytes);
  return answer ? std::optional(answer->share) : std::nullopt;
}

// ---------------------------------------------------------------------------------------------

namespace detail {

inline std::uint64_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Pages that [offset, offset + bytes) touches.
inline std::uint64_t pages_of(std::uint64_t offset, std::uint64_t bytes) noexcept {
  return (offset + bytes + page_bytes() - 1) / page_bytes() - offset / page_bytes();
}

}  // namespace detail

inline std::optional<residency> ask_cachestat(int fd, std::uint64_t offset,
                                              std::uint64_t bytes) noexcept {
  // As linux/mman.h has them, which C libraries of our age have not; the number is the same
  // on all processors.
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
  if (bytes == 0) return residency{1, "cachestat"};  // to the call, 0 means to the end
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
} catch (...) {  // out of memory: nobody tells
  return std::nullopt;
}

}  // namespace millrace::io
