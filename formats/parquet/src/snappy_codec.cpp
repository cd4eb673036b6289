// SPDX-License-Identifier: Apache-2.0
#include <snappy-stubs-public.h>
#include <snappy.h>

#include "codec.hpp"

namespace millrace::parquet::detail {
namespace {

class snappy_codec final : public page_codec {
 public:
  std::string decompress(std::span<const char> in, std::size_t size, buffer& out) override {
    std::size_t stated = 0;
    if (!snappy::GetUncompressedLength(in.data(), in.size(), &stated)) {
      return "it does not begin as snappy does";
    }
    if (stated != size) return "snappy states " + std::to_string(stated) + " bytes";
    // Three bytes can repeat 64.
    if (std::string refused = check_ratio(in, size, 32); !refused.empty()) return refused;
    if (!snappy::RawUncompress(in.data(), in.size(), out.grow(size))) {
      return "snappy finds an error in it";
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<page_codec> make_snappy_codec() {
  return std::make_unique<snappy_codec>();
}

std::string snappy_version() {
  return std::to_string(SNAPPY_MAJOR) + '.' + std::to_string(SNAPPY_MINOR) + '.' +
         std::to_string(SNAPPY_PATCHLEVEL);
}

}  // namespace millrace::parquet::detail
