// SPDX-License-Identifier: Apache-2.0
#include <bzlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "input/decoder.hpp"

namespace millrace::preprocess {
namespace {

const char* describe(int error) {
  switch (error) {
    case BZ_DATA_ERROR_MAGIC:
      return "expected the start of a bzip2 stream";
    case BZ_DATA_ERROR:
      return "a block has a wrong checksum or invalid contents";
    default:
      return "libbz2 rejected a stream";
  }
}

class bzip2_decoder final : public decoder {
 public:
  bzip2_decoder() = default;
  bzip2_decoder(const bzip2_decoder&) = delete;
  bzip2_decoder& operator=(const bzip2_decoder&) = delete;
  ~bzip2_decoder() override { end(); }

  // libbz2 has no function that resets a stream, so end it and create a new one.
  void start() override {
    end();
    stream_ = {};
    if (::BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
    open_ = true;
  }

  step decode(std::span<const std::byte>& in, std::span<std::byte>& out, bool /*last*/) override {
    constexpr std::size_t most = std::numeric_limits<unsigned>::max();
    const auto in_size = static_cast<unsigned>(std::min(in.size(), most));
    const auto out_size = static_cast<unsigned>(std::min(out.size(), most));
    // libbz2's interface does not use const.
    stream_.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data()));  // NOLINT
    stream_.avail_in = in_size;
    stream_.next_out = reinterpret_cast<char*>(out.data());
    stream_.avail_out = out_size;
    const int result = ::BZ2_bzDecompress(&stream_);
    in = in.subspan(in_size - stream_.avail_in);
    out = out.subspan(out_size - stream_.avail_out);
    if (result == BZ_STREAM_END) return {.ended = true};
    if (result == BZ_OK) return {};
    if (result == BZ_MEM_ERROR) throw std::bad_alloc();
    return {.problem = describe(result)};
  }

  const char* name() const noexcept override { return "bzip2"; }

 private:
  void end() noexcept {
    if (open_) (void)::BZ2_bzDecompressEnd(&stream_);
    open_ = false;
  }

  ::bz_stream stream_{};
  bool open_ = false;
};

}  // namespace

std::unique_ptr<decoder> make_bzip2_decoder() {
  return std::make_unique<bzip2_decoder>();
}

std::string bzip2_version() {
  const std::string version = ::BZ2_bzlibVersion();  // "1.0.8, 13-Jul-2019"
  return version.substr(0, version.find(','));
}

}  // namespace millrace::preprocess
