// SPDX-License-Identifier: Apache-2.0
#include "input/decoder.hpp"

#include <zstd.h>

#include <algorithm>
#include <limits>
#include <new>

#include <boost/iostreams/filter/zlib.hpp>

namespace millrace::preprocess {
namespace {

// zlib by way of Boost, for the whole of a member: it checks the header, the checksum and the size
// itself. Not Boost's filter of streams, which does not tell where a member ends: the step in it.
class gzip_decoder final : public decoder {
 public:
  void start() override { inflater_.close(); }

  step decode(std::span<const std::byte>& in, std::span<std::byte>& out, bool /*last*/) override {
    constexpr std::size_t most = std::numeric_limits<int>::max();
    const auto* from = reinterpret_cast<const char*>(in.data());
    const char* const from_end = from + std::min(in.size(), most);
    auto* to = reinterpret_cast<char*>(out.data());
    char* const to_end = to + std::min(out.size(), most);
    step done;
    try {
      done.ended = !inflater_.filter(from, from_end, to, to_end, false);
    } catch (const boost::iostreams::zlib_error& e) {
      namespace zlib = boost::iostreams::zlib;
      // Without progress zlib speaks of its buffers, which is no fault of the data.
      if (e.error() != zlib::buf_error) done.problem = "a member that zlib refuses";
    }
    in = in.subspan(static_cast<std::size_t>(from - reinterpret_cast<const char*>(in.data())));
    out = out.subspan(static_cast<std::size_t>(to - reinterpret_cast<char*>(out.data())));
    return done;
  }

  const char* name() const noexcept override { return "gzip"; }

 private:
  static constexpr int gzip_window_bits = 15 + 16;  // zlib: the largest window, in gzip's wrapping

  boost::iostreams::detail::zlib_decompressor_impl<> inflater_{gzip_window_bits};
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
