// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>

#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_mapping.hpp>

#include "record/text_digest.hpp"

/// `P.digests` of a run with `--drop-duplicates text`, with which the merge finds documents of
/// equal texts. Specification: formats/spec/digests.md.
namespace millrace::preprocess {

inline constexpr std::size_t digests_header_bytes = 16;
inline constexpr std::size_t digests_trailer_bytes = 12;

/// The size of a complete P.digests.
constexpr std::uint64_t digests_bytes(std::uint64_t documents) noexcept {
  return digests_header_bytes + sizeof(text_digest) * documents + digests_trailer_bytes;
}

/// Writes P.digests while documents arrive. Not thread-safe.
class digest_writer {
 public:
  explicit digest_writer(const std::filesystem::path& path);
  /// Goes on after the digests of the first `documents` documents, and drops what follows. Reads
  /// the kept digests, in constant memory.
  ///
  /// @throws config_error  the file does not have them.
  digest_writer(const std::filesystem::path& path, std::int64_t documents);

  /// Writes the digests of the next documents to the file.
  void append(std::span<const text_digest> digests);
  /// Completes the file, under its partial name.
  ///
  /// @pre the digests of `documents` documents were appended
  void finish(std::int64_t documents);

  io::atomic_file& file() noexcept { return file_; }

 private:
  void append_bytes(std::span<const std::byte> bytes);

  io::atomic_file file_;
  std::uint32_t crc32c_ = 0;
};

/// A complete P.digests. Any number of threads may read it at once.
class digest_file {
 public:
  /// Compares the file with its checksum.
  ///
  /// @throws io_error, format_error  it cannot be read, or is damaged.
  explicit digest_file(const std::filesystem::path& path);

  std::int64_t documents() const noexcept {
    return static_cast<std::int64_t>(digests_.size() / sizeof(text_digest));
  }
  /// @pre 0 <= document < documents()
  text_digest at(std::int64_t document) const noexcept {
    assert(document >= 0 && document < documents());
    text_digest digest;
    std::memcpy(digest.data(), &digests_[static_cast<std::size_t>(document) * digest.size()],
                digest.size());
    return digest;
  }
  /// As io::file_mapping::let_go(). Call this from time to time in a pass over the documents.
  void let_go() const noexcept { file_.let_go(); }

 private:
  io::file_mapping file_;
  std::span<const std::byte> digests_;
};

}  // namespace millrace::preprocess
