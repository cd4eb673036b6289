// SPDX-License-Identifier: Apache-2.0
#include <lzma.h>

#include <cstdint>
#include <limits>
#include <new>

#include "input/decoder.hpp"

namespace millrace::preprocess {
namespace {

const char* describe(::lzma_ret error) {
  switch (error) {
    case LZMA_FORMAT_ERROR:
      return "expected the start of an xz stream";
    case LZMA_OPTIONS_ERROR:
      return "liblzma does not support a filter or check";
    case LZMA_DATA_ERROR:
      return "a block, an index or padding has a wrong checksum or invalid contents";
    default:
      return "liblzma rejected a stream";
  }
}

// Decodes all streams of a file and the padding between and after them, as the xz program does.
class xz_decoder final : public decoder {
 public:
  xz_decoder() = default;
  xz_decoder(const xz_decoder&) = delete;
  xz_decoder& operator=(const xz_decoder&) = delete;
  ~xz_decoder() override { ::lzma_end(&stream_); }

  void start() override {
    // Set no memory limit. The file declares how much memory its decompression needs, and that is
    // never more than its compression needed.
    if (::lzma_stream_decoder(&stream_, std::numeric_limits<std::uint64_t>::max(),
                              LZMA_CONCATENATED) != LZMA_OK) {
      throw std::bad_alloc();
    }
  }

  step decode(std::span<const std::byte>& in, std::span<std::byte>& out, bool last) override {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const ::lzma_ret result = ::lzma_code(&stream_, last ? LZMA_FINISH : LZMA_RUN);
    in = in.last(stream_.avail_in);
    out = out.last(stream_.avail_out);
    if (result == LZMA_STREAM_END) return {.ended = true};
    if (result == LZMA_OK || result == LZMA_BUF_ERROR) return {};
    if (result == LZMA_MEM_ERROR) throw std::bad_alloc();
    return {.problem = describe(result)};
  }

  const char* name() const noexcept override { return "xz"; }

 private:
  ::lzma_stream stream_ = LZMA_STREAM_INIT;
};

}  // namespace

std::unique_ptr<decoder> make_xz_decoder() {
  return std::make_unique<xz_decoder>();
}

std::string lzma_version() {
  return ::lzma_version_string();
}

}  // namespace millrace::preprocess
