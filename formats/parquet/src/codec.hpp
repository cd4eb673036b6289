// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "buffer.hpp"
#include "metadata.hpp"

namespace millrace::parquet::detail {

/// Decompresses pages. Use from one thread.
///
/// `decompress` makes exactly `size` bytes in `out`, or fails. A page states its own size, so
/// memory is used only as far as the bytes can plausibly become that many.
class page_codec {
 public:
  page_codec() = default;
  page_codec(const page_codec&) = delete;
  page_codec& operator=(const page_codec&) = delete;
  virtual ~page_codec() = default;

  /// @return why the bytes are refused, or an empty text
  virtual std::string decompress(std::span<const char> in, std::size_t size, buffer& out) = 0;
};

/// How a codec is left out: "column is compressed with SNAPPY, ..." ends with this text. Empty if
/// it can be decompressed.
std::string codec_refusal(codec compression);

/// @pre codec_refusal(compression).empty() and it is not `uncompressed`
std::unique_ptr<page_codec> make_codec(codec compression);

// Null in a build without the library.
std::unique_ptr<page_codec> make_snappy_codec();
std::unique_ptr<page_codec> make_lz4_codec(bool has_hadoop_frames);
std::unique_ptr<page_codec> make_brotli_codec();
// Empty in a build without the library.
std::string snappy_version();
std::string lz4_version();
std::string brotli_version();

/// Refuses a size that no more than `most_ratio` bytes for each byte of `in` can give.
std::string check_ratio(std::span<const char> in, std::size_t size, std::size_t most_ratio);

}  // namespace millrace::parquet::detail
