// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::loader {

/// Increments a counter on construction and decrements it on destruction. Shares ownership of the
/// counter.
class counted {
 public:
  using counter = std::shared_ptr<std::atomic<std::int64_t>>;

  explicit counted(counter count) noexcept : count_(std::move(count)) { ++*count_; }
  counted(counted&& other) noexcept : count_(std::move(other.count_)) {}
  counted& operator=(counted&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  ~counted() {
    if (count_ != nullptr) --*count_;
  }

 private:
  counter count_;
};

/// Page size of the machine; madvise(2) requires page-aligned addresses.
inline std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// A read-only shared mapping of a file at an address that is a multiple of 2 MiB, so that the
/// kernel may use huge pages. The destructor unmaps it.
class file_map {
 public:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;

  /// Maps bytes [offset, offset + bytes) of the file. The kernel may refuse this because of a limit
  /// or the file system. If so, `valid()` is false and `error()` returns the errno, and the caller
  /// must read the file in another way.
  ///
  /// @pre offset is a multiple of 2 MiB, bytes > 0
  file_map(const io::unique_fd& fd, std::uint64_t offset, std::size_t bytes) : offset_(offset) {
    const std::size_t page = page_bytes();
    const std::size_t whole = (bytes + page - 1) / page * page;
    // Reserves 2 MiB more address space than the map needs, so that the map can begin at a multiple
    // of 2 MiB. The code below unmaps the rest.
    void* const got = ::mmap(nullptr, whole + huge_page, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
      error_ = errno;
      return;
    }
    auto* const begin = static_cast<std::byte*>(got);
    const std::size_t skip =
        (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
    std::byte* const at = begin + skip;
    void* const mapped = ::mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd.get(),
                                static_cast<::off_t>(offset));
    if (mapped == MAP_FAILED) {
      error_ = errno;
      (void)::munmap(begin, whole + huge_page);
      return;
    }
    region_ = io::detail::unique_region({at, whole});
    bytes_ = bytes;
    if (skip > 0) (void)::munmap(begin, skip);
    (void)::munmap(at + whole, huge_page - skip);
  }

  bool valid() const noexcept { return bytes_ > 0; }
  int error() const noexcept { return error_; }
  std::uint64_t offset() const noexcept { return offset_; }
  std::size_t bytes() const noexcept { return bytes_; }
  std::byte* data() const noexcept { return static_cast<std::byte*>(region_.get().address); }

 private:
  io::detail::unique_region region_;
  std::uint64_t offset_ = 0;
  std::size_t bytes_ = 0;
  int error_ = 0;
};

}  // namespace millrace::loader
