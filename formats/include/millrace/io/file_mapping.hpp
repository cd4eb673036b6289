// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include <millrace/io/unique_fd.hpp>

namespace millrace::io {

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

/// A whole regular file, mapped read-only. Moving it does not move the bytes.
///
/// An empty file is a valid, empty span. The file must not shrink while it is mapped: the kernel
/// answers a touch of a lost page with SIGBUS, not with an error. Writers in this project only
/// rename finished files into place. Reading from many threads at once is safe.
class file_mapping {
 public:
  file_mapping() = default;

  /// @throws io_error  `path` cannot be opened or mapped, or is not a regular file.
  explicit file_mapping(const std::filesystem::path& path) {
    // Closed on return: the mapping alone keeps the file.
    const unique_fd fd = open_read_only(path, O_NONBLOCK);  // a FIFO: refused, not waited for
    const std::uint64_t size = regular_file_size(fd, path);
    if (size == 0) return;  // mmap refuses length 0, so an empty file owns no region
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (address == MAP_FAILED) throw io_error(path, "mmap", errno);
    region_ = detail::unique_region({address, size});
  }

  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(region_.get().address), region_.get().size_bytes};
  }

 private:
  detail::unique_region region_;
};

}  // namespace millrace::io
