// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace millrace::preprocess {

/// 128 bits of a hash of a document. Documents with the same content have equal keys. The reverse
/// need not hold, so documents with equal keys must be compared.
struct content_key {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  bool operator==(const content_key&) const = default;
};

/// Computes the XXH3-128 of bytes that arrive in pieces. Used by one thread.
class content_hasher {
 public:
  /// @throws config_error  this build has no xxHash; the message names `--drop-duplicates ids`.
  content_hasher();
  ~content_hasher();
  content_hasher(const content_hasher&) = delete;
  content_hasher& operator=(const content_hasher&) = delete;

  void add(std::span<const std::byte> bytes);
  /// Returns the key of all bytes since the last call.
  content_key take();

 private:
  struct hash_state;
  std::unique_ptr<hash_state> state_;
};

bool has_xxhash() noexcept;

/// What `--version` says of the library: "xxHash 0.8.1", or "without xxHash".
std::string optional_xxhash();

/// @throws config_error  as the constructor of content_hasher.
void expect_xxhash();

}  // namespace millrace::preprocess
