// SPDX-License-Identifier: Apache-2.0
#include "codec.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include <millrace/parquet/file.hpp>

namespace millrace::parquet {
namespace detail {
namespace {

class zstd_codec final : public page_codec {
 public:
  zstd_codec() : context_(ZSTD_createDCtx()) {
    if (!context_) throw std::bad_alloc();
  }

  std::string decompress(std::span<const char> in, std::size_t size, buffer& out) override {
    // A block of four bytes can hold 128 KiB, all of them equal.
    if (std::string refused = check_ratio(in, size, std::size_t{1} << 15); !refused.empty()) {
      return refused;
    }
    char* to = out.grow(size);
    const std::size_t made = ZSTD_decompressDCtx(context_.get(), to, size, in.data(), in.size());
    if (ZSTD_isError(made) != 0) return std::string("zstd says: ") + ZSTD_getErrorName(made);
    if (made != size) return "only " + std::to_string(made) + " bytes come out";
    return {};
  }

 private:
  struct free_context {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, free_context> context_;
};

class gzip_codec final : public page_codec {
 public:
  gzip_codec() {
    // 32: accepts the headers of gzip and of zlib.
    if (inflateInit2(&stream_, 15 + 32) != Z_OK) throw std::bad_alloc();
  }
  gzip_codec(const gzip_codec&) = delete;
  gzip_codec& operator=(const gzip_codec&) = delete;
  ~gzip_codec() override { inflateEnd(&stream_); }

  std::string decompress(std::span<const char> in, std::size_t size, buffer& out) override {
    // Two bits can repeat 258 bytes.
    if (std::string refused = check_ratio(in, size, 1032); !refused.empty()) return refused;
    // zlib has no const in its interface, but does not write.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));  // NOLINT: see above
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.grow(size));
    stream_.avail_out = static_cast<uInt>(size);
    while (true) {
      if (inflateReset(&stream_) != Z_OK) return "zlib cannot be reset";
      const int result = inflate(&stream_, Z_FINISH);
      if (result != Z_STREAM_END) {
        return std::string("zlib says: ") +
               (stream_.msg != nullptr ? stream_.msg : "unexpected end or too many bytes");
      }
      if (stream_.avail_in == 0 || stream_.avail_out == 0) break;  // else another member follows
    }
    if (stream_.avail_out != 0) {
      return "only " + std::to_string(size - stream_.avail_out) + " bytes come out";
    }
    return {};
  }

 private:
  ::z_stream stream_{};
};

struct optional_codec {
  const char* name;
  const char* package;
  std::string (*version)();
};
constexpr optional_codec snappy_library{"snappy", "libsnappy-dev", snappy_version};
constexpr optional_codec lz4_library{"lz4", "liblz4-dev", lz4_version};
constexpr optional_codec brotli_library{"brotli", "libbrotli-dev", brotli_version};

std::string refusal_without(const optional_codec& library) {
  if (!library.version().empty()) return {};
  return std::string("this build of millrace lacks the library ") + library.name +
         "; install it with its headers (on Debian and Ubuntu: " + library.package +
         ") and build millrace again";
}

}  // namespace

std::string check_ratio(std::span<const char> in, std::size_t size, std::size_t most_ratio) {
  constexpr std::size_t slack = std::size_t{1} << 17;
  if (size <= slack || (size - slack) / most_ratio <= in.size()) return {};
  return std::to_string(in.size()) + " bytes cannot become so many";
}

std::string codec_refusal(codec compression) {
  switch (compression) {
    case codec::uncompressed:
    case codec::gzip:
    case codec::zstd:
      return {};
    case codec::snappy:
      return refusal_without(snappy_library);
    case codec::brotli:
      return refusal_without(brotli_library);
    case codec::lz4:
    case codec::lz4_raw:
      return refusal_without(lz4_library);
    case codec::lzo:
      break;
  }
  return "which millrace cannot decompress; write the file again with ZSTD or SNAPPY";
}

std::unique_ptr<page_codec> make_codec(codec compression) {
  switch (compression) {
    case codec::gzip:
      return std::make_unique<gzip_codec>();
    case codec::snappy:
      return make_snappy_codec();
    case codec::brotli:
      return make_brotli_codec();
    case codec::lz4:
      return make_lz4_codec(true);
    case codec::lz4_raw:
      return make_lz4_codec(false);
    case codec::zstd:
      return std::make_unique<zstd_codec>();
    case codec::uncompressed:
    case codec::lzo:
      break;
  }
  return nullptr;
}

}  // namespace detail

std::string optional_codecs() {
  std::string text;
  for (const auto& library :
       {detail::snappy_library, detail::lz4_library, detail::brotli_library}) {
    const std::string version = library.version();
    text += text.empty() ? "" : ", ";
    text +=
        version.empty() ? std::string("without ") + library.name : library.name + (" " + version);
  }
  return text;
}

}  // namespace millrace::parquet
