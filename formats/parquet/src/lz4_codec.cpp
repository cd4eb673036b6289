// SPDX-License-Identifier: Apache-2.0
#include <lz4.h>

#include <cstdint>

#include "codec.hpp"

namespace millrace::parquet::detail {
namespace {

/// A number as Hadoop writes it: the most significant byte first.
std::uint32_t big_endian(const char* at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(at[i]);
  return value;
}

class lz4_codec final : public page_codec {
 public:
  explicit lz4_codec(bool has_hadoop_frames) : has_hadoop_frames_(has_hadoop_frames) {}

  std::string decompress(std::span<const char> in, std::size_t size, buffer& out) override {
    // A byte can stand for 255.
    if (std::string refused = check_ratio(in, size, 256); !refused.empty()) return refused;
    char* to = out.grow(size);
    if (has_hadoop_frames_ && hadoop_frames(in, std::span(to, size))) return {};
    // Programs disagreed on the codec LZ4: others wrote a block alone, as LZ4_RAW is today.
    const int made =
        LZ4_decompress_safe(in.data(), to, static_cast<int>(in.size()), static_cast<int>(size));
    if (made < 0) return "lz4 finds an error in it";
    if (static_cast<std::size_t>(made) != size) {
      return "only " + std::to_string(made) + " bytes come out";
    }
    return {};
  }

 private:
  /// Frames: the size after decompression and before it, then a block.
  static bool hadoop_frames(std::span<const char> in, std::span<char> out) {
    while (in.size() >= 8) {
      const std::uint32_t size = big_endian(in.data());
      const std::uint32_t stored = big_endian(in.data() + 4);
      in = in.subspan(8);
      if (stored > in.size() || size > out.size()) return false;
      const int made = LZ4_decompress_safe(in.data(), out.data(), static_cast<int>(stored),
                                           static_cast<int>(size));
      if (made < 0 || static_cast<std::uint32_t>(made) != size) return false;
      in = in.subspan(stored);
      out = out.subspan(size);
    }
    return in.empty() && out.empty();
  }

  bool has_hadoop_frames_;
};

}  // namespace

std::unique_ptr<page_codec> make_lz4_codec(bool has_hadoop_frames) {
  return std::make_unique<lz4_codec>(has_hadoop_frames);
}

std::string lz4_version() {
  return LZ4_versionString();
}

}  // namespace millrace::parquet::detail
