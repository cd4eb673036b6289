// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/crc32c.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/formats/hex.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/loader/verify/block_states.hpp>
#include <millrace/loader/verify/token_range.hpp>

namespace millrace::loader {

/// One file whose blocks are checked: a `.bin`, or an `.idx`. Any thread.
class checked_file {
 public:
  /// What is wrong with a block, and at which byte that shows.
  struct problem {
    bool is_token = false;
    std::uint64_t at_byte = 0;
    std::string what;
  };

  /// @param size_bytes  that it has by its index
  /// @param ids         type of its tokens; nothing: it has none, or they are no ids
  checked_file(std::filesystem::path path, std::uint64_t size_bytes,
               std::optional<formats::dtype> ids)
      : path_(std::move(path)),
        size_(size_bytes),
        ids_(ids),
        states_(formats::sum_block_count(size_bytes)) {}

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint64_t size_bytes() const noexcept { return size_; }
  block_states& states() noexcept { return states_; }
  const block_states& states() const noexcept { return states_; }

  static std::uint64_t first_byte(std::uint64_t block) noexcept {
    return block * formats::sum_block_bytes;
  }
  std::uint64_t last_byte(std::uint64_t block) const noexcept {
    return std::min(size_, first_byte(block) + formats::sum_block_bytes);
  }

  /// @throws io_error  it cannot be opened, or is another file than the first time (ESTALE)
  io::unique_fd open() const;

  /// Reads a block and looks at it, in pieces that stay in a cache.
  ///
  /// @param expected    its checksum; nothing: it has none
  /// @param vocab_size  0: tokens are not looked at
  /// @param buffer      a multiple of 8 bytes; a block of a cold file is best read whole
  /// @throws io_error   it cannot be read, or the file is shorter than it should be (ENODATA)
  std::optional<problem> check(const io::unique_fd& fd, std::uint64_t block,
                               std::optional<std::uint32_t> expected, std::int64_t vocab_size,
                               std::span<std::byte> buffer, io::page_cache pages) const;

  /// The first token of `bytes`, which lie in the file at `offset`, that is no id.
  std::optional<problem> check_tokens(std::span<const std::byte> bytes, std::uint64_t offset,
                                      std::int64_t vocab_size) const;

 private:
  std::filesystem::path path_;
  std::uint64_t size_;
  std::optional<formats::dtype> ids_;
  block_states states_;
  mutable std::mutex mutex_;
  mutable std::optional<io::file_identity> identity_;
};

// ---------------------------------------------------------------------------------------------

inline io::unique_fd checked_file::open() const {
  io::unique_fd fd = io::open_read_only(path_, O_NONBLOCK);
  struct ::stat status {};
  if (::fstat(fd.get(), &status) != 0) throw io_error(path_, "fstat", errno);
  const io::file_identity found{status.st_dev, status.st_ino};
  const std::lock_guard lock(mutex_);
  if (!identity_) identity_ = found;
  // Who reads keeps the old one open: checksums of a new one would say nothing of its bytes.
  if (*identity_ != found) {
    throw io_error(path_, "open (the file was replaced while the run reads it)", ESTALE);
  }
  return fd;
}

inline std::optional<checked_file::problem> checked_file::check_tokens(
    std::span<const std::byte> bytes, std::uint64_t offset, std::int64_t vocab_size) const {
  if (vocab_size == 0 || !ids_) return std::nullopt;
  const std::size_t width = formats::size_bytes(*ids_);
  const std::size_t place = find_outside(bytes, *ids_, vocab_size);
  if (place == bytes.size() / width) return std::nullopt;
  return problem{true, offset + place * width,
                 "token " + std::to_string(offset / width + place) + " of the file is " +
                     std::to_string(token_at(bytes, *ids_, place)) + ", expected 0 to " +
                     std::to_string(vocab_size - 1) + " (vocab_size)"};
}

inline std::optional<checked_file::problem> checked_file::check(
    const io::unique_fd& fd, std::uint64_t block, std::optional<std::uint32_t> expected,
    std::int64_t vocab_size, std::span<std::byte> buffer, io::page_cache pages) const {
  const std::uint64_t end = last_byte(block);
  std::uint32_t crc = 0;
  std::optional<problem> token;
  for (std::uint64_t at = first_byte(block); at < end; at += buffer.size()) {
    const auto piece = buffer.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), end - at)));
    if (io::pread_some(fd, piece, at, path_, pages) < piece.size()) {
      throw io_error(path_, "read (the file is shorter than its index says)", ENODATA);
    }
    if (expected) crc = formats::crc32c(piece, crc);
    if (!token) token = check_tokens(piece, at, vocab_size);
  }
  // First: where bytes are not those that were written, what they are is no matter.
  if (expected && crc != *expected) {
    return problem{false, first_byte(block),
                   "block " + std::to_string(block) + ", the bytes " +
                       std::to_string(first_byte(block)) + " to " + std::to_string(end - 1) +
                       ", is not as it was written: its checksum is " + formats::hex(crc) +
                       ", expected " + formats::hex(*expected)};
  }
  return token;
}

}  // namespace millrace::loader
