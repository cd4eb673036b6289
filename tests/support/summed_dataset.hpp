// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <vector>

#include <millrace/formats/dtype.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/verify/verify_core.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::test {

/// Writes PREFIX.sum for the current contents of PREFIX.bin and PREFIX.idx.
inline void write_sums(const std::filesystem::path& prefix) {
  const auto blocks_of = [](const std::vector<std::byte>& bytes) {
    std::vector<std::uint32_t> blocks;
    formats::block_checksums sums;
    sums.add(bytes, blocks);
    sums.finish(blocks);
    return blocks;
  };
  const auto bin = read_bytes(suffixed(prefix, ".bin"));
  const auto idx = read_bytes(suffixed(prefix, ".idx"));
  write_bytes(suffixed(prefix, ".sum"),
              formats::encode_sum(bin.size(), blocks_of(bin), idx.size(), blocks_of(idx)));
}

/// Flips one bit of the file in place, in the byte at offset `byte`.
inline void flip_bit(const std::filesystem::path& path, std::uint64_t byte) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  unsigned char c = 0;
  const auto at = static_cast<::off_t>(byte);
  bool done = ::pread(fd, &c, 1, at) == 1;
  c ^= 4;
  done = done && ::pwrite(fd, &c, 1, at) == 1;
  ::close(fd);
  if (!done) throw std::runtime_error("cannot change " + path.string());
}

/// A dataset on disk with its `.sum`. Each document has `document_tokens` tokens, except that the
/// last document can have fewer.
template <class T>
class summed_dataset {
 public:
  summed_dataset(std::size_t tokens, T largest, std::size_t document_tokens = 1000) {
    documents_of<T> documents;
    for (std::size_t i = 0; i < tokens; ++i) {
      if (i % document_tokens == 0) documents.push_back({{}});
      const std::size_t id =
          (i * 2654435761U >> 7 & 0x7FFF) % (static_cast<std::size_t>(largest) + 1);
      documents.back().back().push_back(static_cast<T>(id));
      tokens_.push_back(documents.back().back().back());
    }
    write_dataset<T>(prefix(), documents);
    write_sums(prefix());
  }

  std::filesystem::path prefix() const { return folder_ / "data"; }
  std::filesystem::path bin() const { return folder_ / "data.bin"; }
  const std::vector<T>& tokens() const { return tokens_; }

  loader::verified_file file() const {
    return {{bin(), tokens_.size() * sizeof(T)}, formats::dtype_of<T>()};
  }

 private:
  temp_folder folder_;
  std::vector<T> tokens_;
};

}  // namespace millrace::test
