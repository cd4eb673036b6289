// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/mask.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/encode_sidecars.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/formats/codec_quartet.hpp"

namespace millrace::formats {
namespace {

using test::bytes;
using test::expect_refused;
using test::with;

// Written by golden/sidecars/generate.py from the specification.
bytes golden_mask() {
  return test::read_bytes(test::golden("sidecars/idx_uint16_3docs.mask"));
}

/// Returns `file` with a root that matches its header and its only checksum.
bytes with_mask_root(bytes file) {
  const auto all = std::span<const std::byte>(file);
  const auto root =
      mask_root(all.first(mask_header_bytes), all.subspan(all.size() - mask_root_bytes - 4, 4));
  std::memcpy(file.data() + file.size() - mask_root_bytes, root.data(), root.size());
  return file;
}

std::vector<bool> random_bits(std::mt19937_64& random, std::size_t count) {
  std::vector<bool> bits(count);
  for (std::size_t i = 0; i < count; ++i) bits[i] = (random() & 1) != 0;
  return bits;
}

bit_buffer buffer_of(const std::vector<bool>& bits) {
  bit_buffer buffer;
  for (const bool bit : bits) buffer.append_run(bit, 1);
  return buffer;
}

void expect_bits(const bit_span& found, const std::vector<bool>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(found[i], wanted[i]) << i;
}

TEST(CopyBits, PutsThemAtAnyPlace) {
  std::mt19937_64 random(test::seed(9));
  for (int round = 0; round < 2000; ++round) {
    const auto bits = random_bits(random, 300);
    const bit_buffer buffer = buffer_of(bits);
    const std::size_t first = random() % 300;
    const std::size_t count = random() % (301 - first);
    const std::size_t at = random() % 100;
    std::vector<std::uint32_t> to((at + count + 31) / 32 + 1);
    copy_bits(buffer.bits(), first, count, to, at);
    std::vector<bool> wanted(32 * to.size());
    std::copy_n(bits.begin() + static_cast<std::ptrdiff_t>(first), count,
                wanted.begin() + static_cast<std::ptrdiff_t>(at));
    expect_bits(bit_span(std::as_bytes(std::span(to)), 32 * to.size()), wanted);
    if (HasFatalFailure()) return;
  }
}

TEST(ParseMask, ReadsTheGoldenFile) {
  const bytes file = golden_mask();
  const mask_view mask = parse_mask(file);
  expect_bits(mask.bits, {false, true, true, false, true, false, true, true});
  EXPECT_EQ(mask.trained, 5U);
  EXPECT_EQ(root_hex(mask), hex(std::span(file).last(mask_root_bytes)));
  verify_mask(mask);
  EXPECT_EQ(test::encode_mask(mask.bits), file);
}

TEST(ParseMask, RefusesEveryTruncationAndExtraBytes) {
  bytes file = golden_mask();
  test::expect_every_truncation_refused(parse_mask, file);
  file.push_back(std::byte{0});
  expect_refused(parse_mask, file, 69, "the file has 70 bytes, expected 69 for 8 tokens");
}

TEST(ParseMask, RefusesABadHeader) {
  const bytes file = golden_mask();
  for (std::size_t i = 0; i < 8; ++i) {
    expect_refused(parse_mask, with(file, i, file[i] ^ std::byte{0x20}), i, "not a .mask file");
  }
  expect_refused(parse_mask, with_mask_root(with(file, 8, 2U)), 8,
                 "expected .mask version 1, found 2");
  expect_refused(parse_mask, with_mask_root(with(file, 12, 4096U)), 12,
                 "expected blocks of 1048576 bytes, found 4096");
  expect_refused(parse_mask, with_mask_root(with(file, 24, std::uint64_t{9})), 24,
                 "trained tokens is 9, expected at most 8");
  expect_refused(parse_mask, with_mask_root(with(file, 16, std::uint64_t{17})), 69,
                 "for 17 tokens");
  for (const std::uint64_t tokens : {(1UL << 62) + 1, 1UL << 63, ~0UL}) {
    expect_refused(parse_mask, with_mask_root(with(file, 16, tokens)), 16,
                   "expected at most 4611686018427387904");
  }
}

// Either the parser or the check of all bits finds it.
TEST(VerifyMask, RefusesEveryAlteredByte) {
  const bytes file = golden_mask();
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (int change = 1; change < 256; ++change) {
      const bytes altered = with(file, i, file[i] ^ static_cast<std::byte>(change));
      EXPECT_THROW(verify_mask(parse_mask(altered)), format_error) << i << ' ' << change;
    }
  }
}

TEST(VerifyMask, NamesTheFault) {
  const auto verify = [](std::span<const std::byte> file) { verify_mask(parse_mask(file)); };
  bit_buffer bits = buffer_of({true, false, true});
  bytes file = test::encode_mask(bits.bits());
  expect_refused(verify, with_mask_root(with(file, 24, std::uint64_t{1})), 24,
                 "is 1, but 2 bits are 1");
  expect_refused(verify, with(file, 32, std::uint8_t{4}), 32,
                 "the 1 bytes up to byte 33 differ from those that were written");
  bytes unused = with(file, 32, std::uint8_t{13});
  const std::uint32_t crc = crc32c(std::span<const std::byte>(unused).subspan(32, 1));
  unused = with(unused, 33, crc);
  expect_refused(verify, with_mask_root(unused), 32, "a bit after the last of 3 tokens is 1");
}

TEST(VerifyMask, NamesTheBlock) {
  std::mt19937_64 random(test::seed(1));
  bit_buffer bits;
  const std::uint64_t count = (std::uint64_t{8} << 20) * 2 + 13;
  while (bits.size() + 64 <= count) bits.append_word(random(), 64);
  bits.append_run(true, count - bits.size());
  bytes file = test::encode_mask(bits.bits());
  const mask_view mask = parse_mask(file);
  EXPECT_EQ(mask.blocks.size(), 3U);
  verify_mask(mask);
  const auto verify = [](std::span<const std::byte> all) { verify_mask(parse_mask(all)); };
  file[32 + (1 << 20)] ^= std::byte{1};
  expect_refused(verify, file, 32 + (1 << 20), "the 1048576 bytes up to byte 2097184 differ");
}

TEST(EncodeMask, HasNoBlocksWithoutTokens) {
  const bytes file = test::encode_mask({});
  EXPECT_EQ(file.size(), mask_header_bytes + mask_root_bytes);
  verify_mask(parse_mask(file));
}

// Compared with a list of bool.
TEST(BitBuffer, AppendsBitsFromAnyPlaceToAnyPlace) {
  std::mt19937_64 random(test::seed(2));
  for (int round = 0; round < 300; ++round) {
    std::vector<bool> wanted;
    bit_buffer buffer;
    while (wanted.size() < 500) {
      const auto from = random_bits(random, random() % 200);
      const std::size_t first = from.empty() ? 0 : random() % (from.size() + 1);
      const std::size_t last = first + random() % (from.size() - first + 1);
      switch (random() % 3) {
        case 0: {
          const bit_buffer source = buffer_of(from);
          buffer.append(source.bits(), first, last);
          wanted.insert(wanted.end(), from.begin() + static_cast<std::ptrdiff_t>(first),
                        from.begin() + static_cast<std::ptrdiff_t>(last));
          EXPECT_EQ(
              source.bits().count(first, last),
              static_cast<std::uint64_t>(std::count(
                  wanted.end() - static_cast<std::ptrdiff_t>(last - first), wanted.end(), true)));
          break;
        }
        case 1: {
          const bool bit = (random() & 1) != 0;
          buffer.append_run(bit, last);
          wanted.insert(wanted.end(), last, bit);
          break;
        }
        default:
          wanted.resize(random() % (wanted.size() + 1));
          buffer.resize_down(wanted.size());
      }
      expect_bits(buffer.bits(), wanted);
    }
  }
}

}  // namespace
}  // namespace millrace::formats
