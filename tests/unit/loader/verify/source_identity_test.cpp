// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/source_identity.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/verify.hpp>
#include <millrace/dataset/state.hpp>

#include "support/summed_dataset.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;

std::string meta(const std::string& fingerprint, int vocab_size, const std::string& root = "null") {
  return R"({"millrace_meta": 1, "tokenizer": {"type": "GPT2BPETokenizer", "fingerprint": ")" +
         fingerprint + R"(", "vocab_size": )" + std::to_string(vocab_size) +
         R"(, "eod": 0}, "sum_root": )" + root + "}\n";
}

class SourceIdentity : public testing::Test {
 protected:
  /// Writes a new dataset, with or without sidecars. Returns its prefix.
  std::string add(const std::string& fingerprint, int vocab_size, bool with_sum = true) {
    const auto prefix = folder_ / ("data" + std::to_string(count_++));
    test::write_dataset<std::uint16_t>(prefix, {{{1, 2, static_cast<std::uint16_t>(count_)}}});
    if (with_sum) test::write_sums(prefix);
    if (!fingerprint.empty()) {
      test::write_text(test::suffixed(prefix, ".meta"), meta(fingerprint, vocab_size));
    }
    return prefix.string();
  }

  static dataset::run_state run_of(const std::vector<std::string>& prefixes) {
    dataset::run_state state;
    for (const auto& prefix : prefixes) state.data.push_back({.prefix = prefix});
    return state;
  }

  test::temp_folder folder_;
  int count_ = 0;
};

TEST_F(SourceIdentity, IsWhatTheSidecarsSay) {
  const std::string prefix = add("abc", 50257);
  const source_identity identity = identify_source(prefix);
  EXPECT_EQ(identity.root, dataset::verify_sums(prefix).value().root);
  EXPECT_EQ(identity.tokenizer, "abc");
  EXPECT_EQ(identity.vocab_size, 50257);

  const source_identity none = identify_source(add("", 0, false));
  EXPECT_EQ(none.root + none.tokenizer, "");
  EXPECT_EQ(none.vocab_size, 0);
}

// Reads a .meta that preprocess_data has written.
TEST_F(SourceIdentity, ReadsTheMetaOfTheProgram) {
  const auto prefix = folder_ / "lines";
  std::filesystem::copy_file(test::golden("sidecars/preprocess_lines.meta"),
                             test::suffixed(prefix, ".meta"));
  const source_identity identity = identify_source(prefix);
  EXPECT_FALSE(identity.tokenizer.empty());
  EXPECT_GT(identity.vocab_size, 0);
  EXPECT_THAT(test::read_text(test::suffixed(prefix, ".meta")), HasSubstr(identity.tokenizer));
}

// As `inspect_dataset convert` writes them.
TEST_F(SourceIdentity, MayBeOfAnUnknownTokenizer) {
  const std::string converted = add("", 0);
  test::write_text(converted + ".meta", meta("", 65536));
  const source_identity identity = identify_source(converted);
  EXPECT_EQ(identity.tokenizer, "");
  EXPECT_EQ(identity.vocab_size, 0);
  EXPECT_EQ(identity.root.size(), 64U);
  dataset::run_state state = run_of({add("abc", 100), converted});
  const joint_identity run = identify_sources(state);
  EXPECT_EQ(state.tokenizer, "abc");
  EXPECT_EQ(run.without_tokenizer, 1);
  EXPECT_EQ(run.vocab_size, 0);
}

TEST_F(SourceIdentity, GoesIntoTheState) {
  dataset::run_state state = run_of({add("abc", 100), add("", 0, false), add("abc", 100)});
  const joint_identity run = identify_sources(state);
  EXPECT_EQ(state.tokenizer, "abc");
  EXPECT_EQ(state.data[0].root.size(), 64U);
  EXPECT_EQ(state.data[1].root, "");
  EXPECT_NE(state.data[0].root, state.data[2].root);
  EXPECT_EQ(run.without_sum, 1);
  EXPECT_EQ(run.without_tokenizer, 1);
  EXPECT_EQ(run.vocab_size, 0);  // the vocabulary size of the second source is unknown

  dataset::run_state known = run_of({add("abc", 100), add("abc", 100)});
  EXPECT_EQ(identify_sources(known).vocab_size, 100);
}

TEST_F(SourceIdentity, RefusesTwoTokenizers) {
  const std::string one = add("abc", 100), two = add("abc", 100), other = add("def", 200);
  dataset::run_state state = run_of({one, two, other});
  try {
    (void)identify_sources(state);
    FAIL() << "accepted";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("the datasets were made with two tokenizers: " + one +
                                    " has the fingerprint abc, " + other + " has def"));
    EXPECT_THAT(e.what(), HasSubstr("allow_several_tokenizers"));
  }
  const joint_identity run = identify_sources(state, true);
  EXPECT_EQ(state.tokenizer, "abc,def");
  EXPECT_EQ(run.vocab_size, 200);
}

// A state that has the root checksums of its data must refuse a dataset with other bytes.
TEST_F(SourceIdentity, HoldsARunToItsBytes) {
  const std::string prefix = add("abc", 100);
  dataset::run_state saved = run_of({prefix});
  (void)identify_sources(saved);
  test::flip_bit(prefix + ".bin", 0);
  test::write_sums(prefix);
  dataset::run_state now = run_of({prefix});
  (void)identify_sources(now);
  EXPECT_THROW(dataset::require_same(saved, now), config_error);

  test::flip_bit(prefix + ".bin", 0);
  test::write_sums(prefix);
  test::write_text(prefix + ".meta", meta("def", 100));
  (void)identify_sources(now);
  EXPECT_THROW(dataset::require_same(saved, now), config_error);
  test::write_text(prefix + ".meta", meta("abc", 100));
  (void)identify_sources(now);
  EXPECT_NO_THROW(dataset::require_same(saved, now));
}

TEST_F(SourceIdentity, RefusesSidecarsOfTwoDatasets) {
  const std::string prefix = add("abc", 100);
  const std::string wrong(64, '0');
  test::write_text(prefix + ".meta", meta("abc", 100, '"' + wrong + '"'));
  try {
    (void)identify_source(prefix);
    FAIL() << "accepted";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(),
                HasSubstr(prefix + ".meta: \"sum_root\" is " + wrong + ", but the .sum has "));
  }
}

TEST_F(SourceIdentity, RefusesAMetaThatIsNone) {
  const std::string prefix = add("abc", 100);
  for (const char* text :
       {"", "{", "[]", "{}", R"({"millrace_meta": 1})", R"({"millrace_meta": 1, "tokenizer": 5})",
        R"({"millrace_meta": 1, "tokenizer": {"fingerprint": "a", "vocab_size": 0}})",
        R"({"millrace_meta": 1, "tokenizer": {"fingerprint": "a"}})"}) {
    test::write_text(prefix + ".meta", text);
    try {
      (void)identify_source(prefix);
      ADD_FAILURE() << "accepted " << text;
    } catch (const format_error& e) {
      EXPECT_EQ(e.path(), prefix + ".meta") << text;
    }
  }
  test::write_text(prefix + ".meta", meta("abc", 100));
  test::write_text(prefix + ".sum", "x");
  EXPECT_THROW((void)identify_source(prefix), format_error);
}

}  // namespace
}  // namespace millrace::loader
