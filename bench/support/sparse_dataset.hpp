// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_ops.hpp>

/// Writes datasets with any number of documents but without token data, for benchmarks that only
/// compute the order of samples.
namespace millrace::bench {

/// Returns the number of tokens of document `i`, which is from 1 to 1,399. The numbers look random,
/// so a search cannot exploit a pattern.
constexpr std::int32_t sparse_document_tokens(std::int64_t i) noexcept {
  auto x = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15U;
  x = (x ^ x >> 31) * 0xD6E8FEB86659FD93U;
  return static_cast<std::int32_t>(1 + (x >> 32) % 1399);
}

namespace detail {

/// Writes a file sequentially. Drops written pages from the page cache, to leave room for other
/// files.
class column_writer {
 public:
  explicit column_writer(const std::filesystem::path& path)
      : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    if (!fd_) throw io_error(path, "open", errno);
  }

  void append(std::span<const std::byte> bytes) {
    io::pwrite_all(fd_, bytes, at_, path_);
    at_ += bytes.size();
    if (at_ - let_go_of_ >= std::uint64_t{1} << 28) let_go();
  }

  template <class T, class Value>
  void column(std::int64_t entries, const Value& value) {
    std::vector<T> chunk;
    for (std::int64_t i = 0; i < entries; ++i) {
      chunk.push_back(value(i));
      if (chunk.size() < 1 << 20 && i + 1 < entries) continue;
      append(std::as_bytes(std::span(chunk)));
      chunk.clear();
    }
  }

 private:
  void let_go() {
    if (::fdatasync(fd_.get()) != 0) throw io_error(path_, "fdatasync", errno);
    (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
    let_go_of_ = at_;
  }

  std::filesystem::path path_;
  io::unique_fd fd_;
  std::uint64_t at_ = 0;
  std::uint64_t let_go_of_ = 0;
};

}  // namespace detail

/// Writes PREFIX.idx and PREFIX.bin. Each document has one sequence of uint16 tokens. The `.idx` is
/// complete and has 20 bytes per document. The `.bin` has 1,400 bytes per document on average, but
/// is a sparse file that takes no disk space.
///
/// @throws io_error  a file cannot be written, or is too long for the file system
inline void write_sparse_dataset(const std::filesystem::path& prefix, std::int64_t documents) {
  const std::filesystem::path bin = prefix.string() + ".bin";
  detail::column_writer idx(prefix.string() + ".idx");
  const auto count = static_cast<std::uint64_t>(documents);
  idx.append(formats::encode_mmidx_header(formats::dtype::uint16, count, count));
  idx.column<std::int32_t>(documents, sparse_document_tokens);
  std::int64_t at = 0;
  idx.column<std::int64_t>(documents, [&at](std::int64_t i) {
    const std::int64_t pointer = at;
    at += 2 * std::int64_t{sparse_document_tokens(i)};
    return pointer;
  });
  idx.column<std::int64_t>(documents + 1, [](std::int64_t i) { return i; });
  const io::unique_fd hole(::open(bin.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!hole) throw io_error(bin, "open", errno);
  if (::ftruncate(hole.get(), at) != 0) throw io_error(bin, "ftruncate", errno);
}

}  // namespace millrace::bench
