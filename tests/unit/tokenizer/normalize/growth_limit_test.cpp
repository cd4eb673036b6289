// SPDX-License-Identifier: Apache-2.0
#include "core/growth_limit.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hugging_face/read_components.hpp"
#include "normalize/normalizers.hpp"
#include "support/charsmap_builder.hpp"

namespace millrace::tokenizer::detail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A sequence of `times` steps, each of which doubles the size of the text.
normalizer_pointer doubling(int times) {
  std::vector<normalizer_pointer> steps;
  for (int i = 0; i < times; ++i) steps.push_back(make_replace("a", "aa"));
  return make_normalizer_sequence(std::move(steps));
}

std::size_t size_of(const normalizer& normal, std::string_view text) {
  std::string buffer;
  return normal.normalize(text, buffer).size();
}

// Returns how many bytes a normalizer has allocated when it returns or throws.
std::size_t memory_of(const normalizer& normal, std::string_view text) {
  std::string buffer;
  try {
    (void)normal.normalize(text, buffer);
  } catch (const unencodable_text&) {
  }
  return buffer.capacity();
}

TEST(GrowthLimit, LetsATextGrowTo32TimesItsSizeAndAMebibyte) {
  const std::string text(std::size_t{1} << 20, 'a');
  EXPECT_EQ(size_of(*doubling(5), text), 32 * text.size());
  EXPECT_EQ(size_of(*doubling(20), "a"), std::size_t{1} << 20);
}

TEST(GrowthLimit, NamesTheStepTheSizesAndTheRule) {
  const auto grow = [] { (void)size_of(*doubling(40), "banana"); };
  EXPECT_THAT(grow, ThrowsMessage<unencodable_text>(
                        AllOf(HasSubstr("Replace 'a' makes more than 1048768 bytes"),
                              HasSubstr("of a text of 6 bytes"), HasSubstr("32 times its size"))));
}

// 2^40 bytes would not fit in memory, so the step that exceeds the limit must stop before its end.
TEST(GrowthLimit, EndsAStepBeforeItHasFilledTheMemory) {
  EXPECT_LT(memory_of(*doubling(40), "a"), std::size_t{4} << 20);
  const std::string content(1000, 'b');
  const std::string text(100'000, 'a');
  EXPECT_LT(memory_of(*make_replace("a", content), text), std::size_t{16} << 20)
      << "one step alone would make 100 MB";
}

// Every step that can lengthen a text stops as soon as it exceeds the limit.
TEST(GrowthLimit, HoldsForEveryStepThatGrows) {
  std::vector<std::pair<const char*, normalizer_pointer>> steps;
  steps.emplace_back("ByteLevel", make_byte_level_normalizer());
  steps.emplace_back("NFKD", make_normal_form(normal_form::nfkd));
  steps.emplace_back("NFKC", make_normal_form(normal_form::nfkc));
  steps.emplace_back("BertNormalizer", make_bert_normalizer({.clean_text = false}));
  steps.emplace_back("Lowercase", make_lowercase());
  steps.emplace_back("Precompiled",
                     make_precompiled(charsmap(test::charsmap_of({{"\uFDFA", "a long one"}}), 0)));
  std::string text;
  while (text.size() < growth_limit::spare_bytes) text += "\uFDFA\u4E2D\u0130";
  for (const auto& made : steps) {
    const char* const name = made.first;
    ASSERT_GT(size_of(*made.second, text), text.size()) << name;
    growth_limit of_an_empty_text(0);
    std::string buffer;
    const auto grow = [&] { (void)made.second->normalize(text, buffer, of_an_empty_text); };
    EXPECT_THAT(grow, ThrowsMessage<unencodable_text>(HasSubstr(name)));
    EXPECT_LT(buffer.capacity(), 4 * growth_limit::spare_bytes) << name;
  }
}

TEST(GrowthLimit, CountsWhatIsThereAndNotWhatWasBefore) {
  // The buffer of a long text does not count toward the limit of the next text, which is short.
  std::string buffer(std::size_t{8} << 20, 'x');
  EXPECT_EQ(make_normal_form(normal_form::nfc)->normalize("e\u0301", buffer), "\u00E9");
  buffer.assign(std::size_t{8} << 20, 'x');
  EXPECT_EQ(make_normal_form(normal_form::nfkd)->normalize("\uFB01", buffer), "fi");
}

TEST(GrowthLimit, AsksMeanwhileAtEachStepAndEachMebibyte) {
  int asked = 0;
  const std::function<void()> check = [&] { ++asked; };
  const std::string text(std::size_t{1} << 20, 'a');
  growth_limit limit(text.size(), &check);
  std::string buffer;
  (void)doubling(1)->normalize("a", buffer, limit);
  EXPECT_EQ(asked, 1);
  asked = 0;
  EXPECT_EQ(doubling(4)->normalize(text, buffer, limit).size(), text.size() << 4);
  EXPECT_GE(asked, 2 + 4 + 8 + 16);
}

TEST(GrowthLimit, LetsWhatIsThrownMeanwhileThrough) {
  struct stop {};
  const std::function<void()> check = [] { throw stop(); };
  growth_limit limit(1, &check);
  std::string buffer;
  EXPECT_THROW((void)doubling(1)->normalize("b", buffer, limit), stop);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
