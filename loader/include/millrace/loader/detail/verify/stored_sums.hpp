// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::loader {

/// The checksums of a dataset. They are kept in memory (4 bytes per MiB of data), so that later
/// changes to the `.sum` have no effect. Immutable and therefore thread-safe.
class stored_sums {
 public:
  /// Reads PREFIX.sum. Returns null if the file does not exist.
  ///
  /// @throws format_error  the file is not a valid `.sum`, or its root checksum does not match its
  ///                       content
  /// @throws io_error      the file exists but cannot be read
  static std::unique_ptr<const stored_sums> find(const std::filesystem::path& prefix) {
    const auto path = dataset::sidecar_paths(prefix).sum;
    if (!io::identity_of(path)) return nullptr;
    return std::unique_ptr<const stored_sums>(new stored_sums(path));
  }

  const std::filesystem::path& path() const noexcept { return path_; }
  const formats::sum_view& view() const noexcept { return view_; }
  std::string root() const { return formats::root_hex(view_); }

 private:
  explicit stored_sums(std::filesystem::path path) : path_(std::move(path)) {
    const io::unique_fd fd = io::open_read_only(path_, O_NONBLOCK);
    const std::uint64_t size = io::regular_file_size(fd, path_);
    bytes_.resize(formats::sum_header_bytes);
    bytes_.resize(io::pread_some(fd, bytes_, 0, path_));
    try {
      // Checks the header first, so that a huge invalid file is not read into memory.
      (void)formats::parse_sum_header(bytes_, size);
      bytes_.resize(static_cast<std::size_t>(size));
      bytes_.resize(io::pread_some(fd, bytes_, 0, path_));
      view_ = formats::parse_sum(bytes_);
    } catch (const format_error& e) {
      throw e.in(path_);
    }
  }

  std::filesystem::path path_;
  std::vector<std::byte> bytes_;
  formats::sum_view view_;
};

}  // namespace millrace::loader
