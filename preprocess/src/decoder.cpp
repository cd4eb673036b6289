// SPDX-License-Identifier: Apache-2.0
#include "decoder.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <new>

namespace millrace::preprocess {
namespace {

// zlib, for the whole of a member: it checks the header, the checksum and the size itself.
class gzip_decoder final : public decoder {
 public:
  gzip_decoder() {
    if (::inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  gzip_decoder(const gzip_decoder&) = delete;
  gzip_decoder& operator=(const gzip_decoder&) = delete;
  ~gzip_decoder() override { (void)::inflateEnd(&stream_); }

  void start() override { (void)::inflateReset(&stream_); }

  step decode(std::span<const std::byte>& in, std::span<std::byte>& out, bool /*last*/) override {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    const auto in_size = static_cast<uInt>(std::min(in.size(), most));
    const auto out_size = static_cast<uInt>(std::min(out.size(), most));
    // zlib's interface is older than const.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));  // NOLINT
    stream_.avail_in = in_size;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = out_size;
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    in = in.subspan(in_size - stream_.avail_in);
    out = out.subspan(out_size - stream_.avail_out);
    if (result == Z_STREAM_END) return {.ended = true};
    if (result == Z_OK || result == Z_BUF_ERROR) return {};
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    return {.problem = stream_.msg != nullptr ? stream_.msg : "a member that zlib refuses"};
  }

  const char* name() const noexcept override { return "gzip"; }

 private:
  ::z_stream stream_{};
};

class zstd_decoder final : public decoder {
 public:
  zstd_decoder() : stream_(::ZSTD_createDCtx()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }

  void start() override { (void)::ZSTD_DCtx_reset(stream_.get(), ZSTD_reset_session_only); }

  step decode(std::span<const std::byte>& in, std::span<std::byte>& out, bool /*last*/) override {
    ::ZSTD_inBuffer from{in.data(), in.size(), 0};
    ::ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t hint = ::ZSTD_decompressStream(stream_.get(), &to, &from);
    in = in.subspan(from.pos);
    out = out.subspan(to.pos);
    if (::ZSTD_isError(hint) != 0) return {.problem = ::ZSTD_getErrorName(hint)};
    return {.ended = hint == 0};
  }

  const char* name() const noexcept override { return "zstd"; }

 private:
  struct free_stream {
    void operator()(::ZSTD_DCtx* stream) const noexcept { ::ZSTD_freeDCtx(stream); }
  };
  std::unique_ptr<::ZSTD_DCtx, free_stream> stream_;
};

}  // namespace

std::unique_ptr<decoder> make_gzip_decoder() {
  return std::make_unique<gzip_decoder>();
}
std::unique_ptr<decoder> make_zstd_decoder() {
  return std::make_unique<zstd_decoder>();
}

std::unique_ptr<decoder> make_decoder(compression packing, const std::string& file_name) {
  expect_library_for(packing, file_name);
  switch (packing) {
    case compression::gzip:
      return make_gzip_decoder();
    case compression::zstd:
      return make_zstd_decoder();
    case compression::bzip2:
      return make_bzip2_decoder();
    case compression::xz:
      return make_xz_decoder();
    case compression::none:
      break;
  }
  return nullptr;
}

}  // namespace millrace::preprocess
