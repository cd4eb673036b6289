// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/mmidx_verify.hpp>

#include <gtest/gtest.h>

#include <limits>

#include "support/paths.hpp"
#include "unit/formats/codec_quartet.hpp"
#include "unit/formats/golden_idx.hpp"

namespace millrace::formats {
namespace {

using test::bytes;
using test::document_index_at;
using test::expect_refused;
using test::golden_idx;
using test::lengths_at;
using test::pointers_at;
using test::with;

void verify(std::span<const std::byte> file) {
  verify_mmidx(parse_mmidx(file), 16);
}

TEST(VerifyMmidx, AcceptsMegatronsFile) {
  EXPECT_FALSE(test::refusal(verify, golden_idx()));
}

TEST(VerifyMmidx, NamesTheFirstWrongEntry) {
  const bytes file = golden_idx();
  expect_refused(verify, with(file, lengths_at + 4, std::int32_t{-2}), lengths_at + 4,
                 "length of sequence 1 is -2");
  expect_refused(verify, with(file, lengths_at + 4, std::int32_t{3}), pointers_at + 16,
                 "pointer of sequence 2 is 10, expected 12");
  expect_refused(verify, with(file, pointers_at + 8, std::int64_t{7}), pointers_at + 8,
                 "pointer of sequence 1 is 7, expected 6");
  expect_refused(verify, with(file, document_index_at + 8, std::int64_t{2}), document_index_at + 16,
                 "document 1 ends before sequence 1, expected 2 to 3");
  expect_refused(verify, with(file, document_index_at + 8, std::int64_t{4}), document_index_at + 8,
                 "document 0 ends before sequence 4, expected 0 to 3");
  expect_refused(verify, with(file, document_index_at + 16, std::int64_t{-1}),
                 document_index_at + 16, "document 1 ends before sequence -1");
}

TEST(VerifyMmidx, WantsABinOfExactlyTheSequences) {
  const bytes file = golden_idx();
  const mmidx_view idx = parse_mmidx(file);
  for (const std::uint64_t size : {0UL, 15UL, 17UL, ~0UL}) {
    EXPECT_THROW(verify_mmidx(idx, size), format_error) << size;
  }
  const bytes empty = test::read_bytes(test::golden("megatron/idx_empty.idx"));
  EXPECT_NO_THROW(verify_mmidx(parse_mmidx(empty), 0));
  EXPECT_THROW(verify_mmidx(parse_mmidx(empty), 1), format_error);
}

// If any byte is altered, the check accepts or refuses the index and does not overflow. A valid
// index with pointers near 2^63 would need 2^30 sequences. So this test only alters single bytes of
// a small index.
TEST(VerifyMmidx, SurvivesEveryAlteredByte) {
  const bytes file = golden_idx();
  const std::size_t refused = test::survive_every_alteration(verify, file);
  // Four of the altered files are valid. In three of them, the document index 0 1 1 3 becomes
  // 0 0 1 3, 0 1 2 3 or 0 1 3 3. In the fourth, the type is int16, which is as wide as uint16.
  EXPECT_EQ(255 * file.size() - refused, 4);
}

}  // namespace
}  // namespace millrace::formats
