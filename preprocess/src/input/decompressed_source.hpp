// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "input/byte_source.hpp"
#include "input/decoder.hpp"

namespace millrace::preprocess {

/// Decompresses another source to the end of the file. The file may consist of any number of
/// consecutive units (gzip members, zstd frames or bzip2 streams), or be a whole xz file.
class decompressed_source final : public byte_source {
 public:
  /// @param compressed  the compressed bytes, starting at `from`
  /// @param name        name of the file, for errors
  /// @param later       as in open_input_at()
  /// @param most_window_bytes  as in input_file
  decompressed_source(std::unique_ptr<byte_source> compressed, compression compressed_with,
                      std::filesystem::path name, restart_point from = {},
                      std::span<const restart_point> later = {},
                      std::uint64_t most_window_bytes = most_zstd_window_bytes);

  std::size_t read(std::span<std::byte> out) override;
  std::uint64_t position_bytes() const noexcept override { return compressed_->position_bytes(); }
  void cancel() noexcept override { compressed_->cancel(); }

 private:
  bool refill();
  bool next_unit();
  bool pass_padding();
  void decompress(std::span<std::byte>& out);
  void reach_point();
  void check_points();
  [[noreturn]] void fail(const std::string& problem) const;

  std::unique_ptr<byte_source> compressed_;
  compression compression_;
  std::filesystem::path name_;
  std::unique_ptr<decoder> decoder_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> in_;  // the part of buffer_ not yet decompressed
  bool inside_ = false;            // the decoder is in the middle of a unit
  bool was_full_ = false;   // the last output buffer was filled, so the decoder may hold more text
  bool ended_ = false;      // compressed_ has reached its end
  std::string problem_;     // read() throws it after all text before the problem
  bool refused_ = false;    // problem_ is a refusal, not damage
  std::uint64_t text_ = 0;  // text offset of the next byte to return
  std::span<const restart_point> later_;
};

}  // namespace millrace::preprocess
