// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "input/byte_source.hpp"
#include "input/decoder.hpp"

namespace millrace::preprocess {

/// Decompresses another source: any number of members, frames or streams, one after another, to
/// the end of the file.
class decompressed_source final : public byte_source {
 public:
  /// @param compressed  the compressed bytes, from those of `from` on
  /// @param name    of the file, for errors
  /// @param later   as open_input_at's
  /// @param most_window_bytes  as of input_file
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
  std::span<const std::byte> in_;  // of buffer_, not yet decompressed
  bool inside_ = false;            // a unit
  bool was_full_ = false;          // the decoder may hold text for which there was no room
  bool ended_ = false;             // compressed_ gave its last byte
  std::string problem_;            // to be thrown once what precedes it is given
  bool refused_ = false;           // problem_ is no damage
  std::uint64_t text_ = 0;         // given so far, from the front of the file
  std::span<const restart_point> later_;
};

}  // namespace millrace::preprocess
