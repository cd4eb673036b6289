// SPDX-License-Identifier: Apache-2.0
#include "core/composed_tokenizer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "support/encode.hpp"
#include "support/small_vocabulary.hpp"

namespace millrace::tokenizer::detail {
namespace {

std::unique_ptr<tokenizer> small() {
  using test::small_vocabulary;
  return small_vocabulary(small_vocabulary::bytes_and({"ab"}), "a b\n").load();
}

std::string fault_of(std::string_view content) {
  try {
    (void)with_eod(small(), content);
    return "accepted";
  } catch (const config_error& e) {
    return e.what();
  }
}

TEST(ChosenEod, IsTheTokenOfThatText) {
  EXPECT_EQ(with_eod(small(), "ab")->eod(), 256);
  EXPECT_EQ(with_eod(small(), "<|endoftext|>")->eod(), 257);
}

TEST(ChosenEod, LeavesEverythingElseAlone) {
  const auto inner = small();
  const auto chosen = with_eod(small(), "ab");
  EXPECT_EQ(chosen->vocab_size(), inner->vocab_size());
  EXPECT_EQ(chosen->notes(), inner->notes());
  EXPECT_EQ(test::encode(*chosen, "abc"), test::encode(*inner, "abc"));
  EXPECT_EQ(chosen->decode(std::vector<std::int64_t>{256, 'c'}), "abc");
  EXPECT_NE(chosen->fingerprint(), inner->fingerprint());
  EXPECT_NE(chosen->fingerprint(), with_eod(small(), "a")->fingerprint());
}

// A chosen end-of-document token must be the text of exactly one token. In ByteLevelTokenizer, all
// ids that are not bytes decode to U+FFFD.
TEST(ChosenEod, HasToBeTheTextOfOneToken) {
  EXPECT_EQ(fault_of("</s>"), "--eod-token '</s>' is not the text of any token");
  tokenizer_options bytes;
  try {
    (void)with_eod(make_tokenizer(bytes), "\xEF\xBF\xBD");
    ADD_FAILURE() << "accepted";
  } catch (const config_error& e) {
    EXPECT_STREQ(e.what(), "--eod-token '\\xef\\xbf\\xbd' is the text of two tokens, 256 and 257");
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
