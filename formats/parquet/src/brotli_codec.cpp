// SPDX-License-Identifier: Apache-2.0
#include <brotli/decode.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "codec.hpp"

namespace millrace::parquet::detail {
namespace {

struct free_decoder {
  void operator()(BrotliDecoderState* state) const { BrotliDecoderDestroyInstance(state); }
};

class brotli_codec final : public page_codec {
 public:
  std::string decompress(std::span<const char> in, std::size_t size, buffer& out) override {
    const std::unique_ptr<BrotliDecoderState, free_decoder> state(
        BrotliDecoderCreateInstance(nullptr, nullptr, nullptr));
    if (!state) throw std::bad_alloc();
    std::size_t in_left = in.size();
    const auto* from = reinterpret_cast<const std::uint8_t*>(in.data());
    // Few bytes can become very many, so the memory grows with what comes out.
    std::size_t room = std::min(size, std::max<std::size_t>(4 * in.size(), std::size_t{1} << 20));
    std::size_t made = 0;
    while (true) {
      auto* to = reinterpret_cast<std::uint8_t*>(out.grow(room, made)) + made;
      std::size_t out_left = room - made;
      const BrotliDecoderResult result =
          BrotliDecoderDecompressStream(state.get(), &in_left, &from, &out_left, &to, nullptr);
      made = room - out_left;
      if (result == BROTLI_DECODER_RESULT_SUCCESS) break;
      if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) return "brotli data ends too early";
      if (result == BROTLI_DECODER_RESULT_ERROR) {
        return std::string("brotli says: ") +
               BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state.get()));
      }
      if (room == size) return "more bytes come out";
      room = room > size / 2 ? size : 2 * room;
    }
    if (made != size) return "only " + std::to_string(made) + " bytes come out";
    return {};
  }
};

}  // namespace

std::unique_ptr<page_codec> make_brotli_codec() {
  return std::make_unique<brotli_codec>();
}

std::string brotli_version() {
  const std::uint32_t version = BrotliDecoderVersion();
  return std::to_string(version >> 24) + '.' + std::to_string(version >> 12 & 0xFFF) + '.' +
         std::to_string(version & 0xFFF);
}

}  // namespace millrace::parquet::detail
