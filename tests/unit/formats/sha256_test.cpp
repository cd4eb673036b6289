// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/sha256.hpp>

#include <gtest/gtest.h>

#include <string>

namespace millrace::formats {
namespace {

// The digests are those of the examples in FIPS 180-4.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The digest does not depend on how the text is divided into pieces. If 56 bytes or more are in the
// last block, the padding takes another block. Pieces end at various positions in a block.
TEST(Sha256, DoesNotDependOnThePieces) {
  for (std::size_t size = 0; size < 200; ++size) {
    const std::string text(size, 'x');
    const std::string whole = sha256_hex(text);
    for (std::size_t cut = 0; cut <= size; cut += 7) {
      sha256 hash;
      hash.update(std::string_view(text).substr(0, cut));
      (void)hash.finish();  // more may be appended
      EXPECT_EQ(hash.update(std::string_view(text).substr(cut)).hex(), whole)
          << cut << " of " << size;
    }
  }
}

// The hash is the same with and without the processor's SHA instructions.
TEST(Sha256, DoesNotDependOnTheProcessor) {
  if (!sha256_instructions::are_there()) GTEST_SKIP() << "the processor has no SHA instructions";
  std::string text;
  for (int i = 0; i < 10000; ++i) text += static_cast<char>(i * i % 251);
  const auto bytes = std::as_bytes(std::span(text));
  sha256 fast;
  fast.update(bytes);
  sha256 slow(sha256::instructions::never);
  slow.update(bytes);
  EXPECT_EQ(fast.hex(), slow.hex());
}

}  // namespace
}  // namespace millrace::formats
