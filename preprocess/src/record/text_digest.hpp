// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <millrace/formats/detail/sha256.hpp>

namespace millrace::preprocess {

/// Tells documents apart by the texts of their record: formats/spec/digests.md.
using text_digest = std::array<std::byte, 32>;

/// Makes the digest of the texts of one document, which are passed in any number of pieces: SHA-256
/// of the bytes of each text, followed by their number as a little-endian 64-bit integer.
class text_digester {
 public:
  /// Appends bytes to the current text.
  text_digester& append(std::string_view piece) noexcept {
    hash_.update(piece);
    size_bytes_ += piece.size();
    return *this;
  }
  text_digester& end_text() noexcept {
    hash_.update(std::as_bytes(std::span(&size_bytes_, 1)));
    size_bytes_ = 0;
    return *this;
  }
  /// @pre no text was begun and not ended
  text_digest finish() const noexcept { return std::bit_cast<text_digest>(hash_.finish()); }

 private:
  formats::sha256 hash_;
  std::uint64_t size_bytes_ = 0;  // of the current text
};

/// Returns the digest of texts that are in memory.
inline text_digest digest_of(std::span<const std::string_view> texts) noexcept {
  text_digester digest;
  for (const std::string_view text : texts) digest.append(text).end_text();
  return digest.finish();
}

}  // namespace millrace::preprocess
