// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/md5.hpp>

#include <string>

#include <gtest/gtest.h>

namespace millrace::formats {
namespace {

// The digests are those of the test suite in RFC 1321, A.5.
TEST(Md5, GivesWhatItsRfcSays) {
  EXPECT_EQ(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex("a"), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(md5_hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5_hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5_hex("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(md5_hex("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "d174ab98d277d9f5a5611c2c9f419d9f");
}

// Texts of every length are padded correctly. The expected value is the MD5 of the joined MD5s of
// 'x' * n for n from 0 to 200, made with Python's hashlib. These lengths cover every position at
// which a text can end in its last block.
TEST(Md5, PadsTextsOfEveryLength) {
  std::string all;
  for (std::size_t n = 0; n <= 200; ++n) all += md5_hex(std::string(n, 'x'));
  EXPECT_EQ(md5_hex(all), "1f0d9d949b2c16e511c7083a082d1828");
}

}  // namespace
}  // namespace millrace::formats
