// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/sha256_interleaved.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::formats {
namespace {

// The definition, with one ordinary SHA-256 per stream.
sha256::digest naive(std::vector<std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  bytes.resize((bytes.size() + 1023) / 1024 * 1024);
  std::array<sha256, 16> streams;
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    streams[at / 4 % 16].update(std::span(bytes).subspan(at, 4));
  }
  sha256 all;
  for (const sha256& stream : streams) {
    const sha256::digest digest = stream.finish();
    all.update(std::as_bytes(std::span(digest)));
  }
  return all.update(std::as_bytes(std::span(&size, 1))).finish();
}

std::vector<detail::stream_compressor> compressors() {
  std::vector<detail::stream_compressor> all = {detail::compress_streams_portable};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) all.push_back(detail::compress_streams_avx2);
  if (__builtin_cpu_supports("avx512f") != 0) all.push_back(detail::compress_streams_avx512);
#endif
  return all;
}

std::vector<std::byte> bytes_of(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

// Sizes around a whole number of rows and of blocks, with each kind of vector.
TEST(Sha256Interleaved, IsTheDigestOfTheStreams) {
  for (const std::size_t size :
       {0U, 1U, 3U, 4U, 63U, 64U, 65U, 1020U, 1023U, 1024U, 1025U, 5000U}) {
    const auto bytes = bytes_of(size);
    const auto expected = naive(bytes);
    EXPECT_EQ(sha256_interleaved(bytes), expected) << size << " bytes";
    for (const auto compress : compressors()) {
      EXPECT_EQ(detail::sha256_interleaved_with(compress, bytes), expected) << size << " bytes";
    }
  }
}

// Each byte counts, and so does a zero at the end, which looks like padding.
TEST(Sha256Interleaved, DependsOnEachByteAndOnTheSize) {
  auto bytes = bytes_of(1100);
  const auto before = sha256_interleaved(bytes);
  for (std::byte& byte : bytes) {
    byte ^= std::byte{1};
    EXPECT_NE(sha256_interleaved(bytes), before);
    byte ^= std::byte{1};
  }
  bytes.push_back(std::byte{0});
  EXPECT_NE(sha256_interleaved(bytes), before);
}

}  // namespace
}  // namespace millrace::formats
