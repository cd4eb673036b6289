// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zstd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/filter/zlib.hpp>
#include <boost/iostreams/filtering_stream.hpp>

/// Builds compressed files piece by piece. Writes the headers and checksums of gzip as RFC 1952
/// defines them, without the library that the reader uses.
namespace millrace::test {

inline std::uint32_t crc32(std::string_view text) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

inline std::string little_endian(std::uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
  return out;
}

inline std::string raw_deflate(std::string_view text) {
  namespace io = boost::iostreams;
  io::zlib_params params;
  params.noheader = true;
  std::string out;
  io::filtering_ostream chain;
  chain.push(io::zlib_compressor(params));
  chain.push(io::back_inserter(out));
  chain.write(text.data(), static_cast<std::streamsize>(text.size()));
  chain.reset();
  return out;
}

/// Optional fields of a gzip header. A field that is an empty string is omitted.
struct gzip_header {
  std::string_view extra = {};
  std::string_view name = {};
  std::string_view comment = {};
  bool checksum = false;
};

/// Returns one gzip member that contains `text` in compressed form.
inline std::string gzip(std::string_view text, const gzip_header& header = {}) {
  int flags = header.checksum ? 2 : 0;
  if (!header.extra.empty()) flags |= 4;
  if (!header.name.empty()) flags |= 8;
  if (!header.comment.empty()) flags |= 16;
  std::string out = "\x1F\x8B\x08";
  out += static_cast<char>(flags);
  out += std::string(5, '\0');  // no modification time, no extra flags
  out += '\xFF';                // unknown operating system
  if (!header.extra.empty()) {
    out += little_endian(static_cast<std::uint32_t>(header.extra.size()), 2);
    out += header.extra;
  }
  if (!header.name.empty()) (out += header.name) += '\0';
  if (!header.comment.empty()) (out += header.comment) += '\0';
  if (header.checksum) out += little_endian(crc32(out) & 0xFFFF, 2);
  out += raw_deflate(text);
  out += little_endian(crc32(text), 4);
  out += little_endian(static_cast<std::uint32_t>(text.size()), 4);
  return out;
}

/// Returns one zstd frame with a checksum, as the zstd program writes it.
inline std::string zstd(std::string_view text) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size =
      ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size());
  ZSTD_freeCCtx(context);
  if (ZSTD_isError(size) != 0) throw std::runtime_error(ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

/// Returns a skippable frame, which a reader must ignore.
inline std::string zstd_skippable(std::string_view payload) {
  return little_endian(0x184D2A50, 4) +
         little_endian(static_cast<std::uint32_t>(payload.size()), 4) + std::string(payload);
}

}  // namespace millrace::test
