// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "input/file_format.hpp"
#include "input/zstd_frames.hpp"

namespace millrace::preprocess {

/// One library's streaming decompressor. It decodes one *unit* at a time: a gzip member, a zstd
/// frame (a skippable frame is a unit without text), a bzip2 stream or a whole xz file. Not
/// thread-safe.
class decoder {
 public:
  struct step {
    bool ended = false;        ///< the unit has ended; `in` now starts after the unit's checksums
    std::string problem = {};  ///< if not empty, the data is damaged after the text in `out`
    /// If not empty, the unit is refused, because it needs more memory than allowed or available.
    std::string refusal = {};
  };

  virtual ~decoder() = default;

  /// Starts a new unit. The next bytes passed to decode() must be the beginning of that unit.
  virtual void start() = 0;

  /// Decompresses bytes from the start of `in` to the start of `out`, and advances both spans past
  /// the bytes that were used. If both spans are unchanged, the decoder needs more input or more
  /// room in `out`.
  ///
  /// @param last  true if `in` is the rest of the file
  virtual step decode(std::span<const std::byte>& in, std::span<std::byte>& out, bool last) = 0;

  /// The name of the format, for messages: "gzip".
  virtual const char* name() const noexcept = 0;
};

/// Makes the decoder for a compression.
///
/// @param file_name          for error messages
std::unique_ptr<decoder> make_decoder(compression compressed_with, const std::string& file_name,
                                      std::uint64_t most_window_bytes = most_zstd_window_bytes);

std::unique_ptr<decoder> make_gzip_decoder();
/// @param most_window_bytes  a frame is refused if its window (the text that the decoder must keep)
///                           needs more memory than this. Only the part of the window that is
///                           filled with text occupies memory.
std::unique_ptr<decoder> make_zstd_decoder(
    std::uint64_t most_window_bytes = most_zstd_window_bytes);
/// A build may lack libbz2 (bzip2), liblzma (xz) or both. Without the library for a format, the
/// make function for that format returns null, and its version function returns an empty string.
std::unique_ptr<decoder> make_bzip2_decoder();
std::unique_ptr<decoder> make_xz_decoder();
std::string bzip2_version();
std::string lzma_version();

}  // namespace millrace::preprocess
