// SPDX-License-Identifier: Apache-2.0
#include <millrace/tokenizer/make_tokenizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <millrace/error.hpp>

#include "support/small_vocabulary.hpp"

namespace millrace::tokenizer {
namespace {

std::string config_fault(const tokenizer_options& options) {
  try {
    (void)make_tokenizer(options);
    return "accepted";
  } catch (const config_error& e) {
    return e.what();
  }
}

TEST(MakeTokenizer, BuildsEachType) {
  EXPECT_EQ(make_tokenizer({})->vocab_size(), 512);

  tokenizer_options null;
  null.type = "NullTokenizer";
  null.vocab_size = 100;
  EXPECT_EQ(make_tokenizer(null)->vocab_size(), 100);

  const test::small_vocabulary files(test::small_vocabulary::bytes_and({"ab"}), "a b\n");
  EXPECT_EQ(make_tokenizer(files.options())->vocab_size(), 258);
}

TEST(MakeTokenizer, NamesTheTypesThatThereAre) {
  tokenizer_options options;
  options.type = "gpt2";
  EXPECT_EQ(config_fault(options),
            "--tokenizer-type 'gpt2': unknown, expected one of ByteLevelTokenizer, NullTokenizer, "
            "GPT2BPETokenizer");
}

TEST(MakeTokenizer, NamesTheOptionThatIsMissing) {
  tokenizer_options options;
  options.type = "NullTokenizer";
  EXPECT_EQ(config_fault(options), "--tokenizer-type NullTokenizer needs --vocab-size");
  options.type = "GPT2BPETokenizer";
  EXPECT_EQ(config_fault(options), "--tokenizer-type GPT2BPETokenizer needs --vocab-file");
  options.vocab_file = "vocab.json";
  EXPECT_EQ(config_fault(options), "--tokenizer-type GPT2BPETokenizer needs --merge-file");
}

// An option without effect would be a vocabulary that the user believes in and does not get.
TEST(MakeTokenizer, RefusesOptionsThatTheTypeDoesNotTake) {
  const std::string prefix = "--tokenizer-type ByteLevelTokenizer does not take ";
  tokenizer_options options;
  options.model = "m";
  EXPECT_EQ(config_fault(options), prefix + "--tokenizer-model");
  options = {};
  options.vocab_file = "v";
  EXPECT_EQ(config_fault(options), prefix + "--vocab-file");
  options = {};
  options.merge_file = "m";
  EXPECT_EQ(config_fault(options), prefix + "--merge-file");
  options = {};
  options.vocab_size = 512;
  EXPECT_EQ(config_fault(options), prefix + "--vocab-size");
}

TEST(MakeTokenizer, GivesEachTypeAFingerprintOfItsOwn) {
  tokenizer_options null;
  null.type = "NullTokenizer";
  null.vocab_size = 512;
  EXPECT_NE(make_tokenizer({})->fingerprint(), make_tokenizer(null)->fingerprint());
}

}  // namespace
}  // namespace millrace::tokenizer
