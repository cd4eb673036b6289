// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/statistics.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>

#include "support/paths.hpp"
#include "unit/dataset/odd_mask.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class Statistics : public testing::Test {
 protected:
  template <class T>
  indexed_dataset stored(const test::documents_of<T>& documents, const char* name = "data") {
    test::write_dataset<T>(folder_ / name, documents);
    return indexed_dataset(folder_ / name);
  }
  template <class T>
  const std::vector<indexed_dataset>& only(const test::documents_of<T>& documents) {
    data_.clear();
    data_.push_back(stored(documents));
    return data_;
  }

  test::temp_folder folder_;
  std::vector<indexed_dataset> data_;
};

TEST_F(Statistics, CountsIdsAndLengths) {
  const auto found = statistics_of(stored<std::uint16_t>({{{3, 3, 65535}}, {{0}, {3, 1}}, {}}));
  EXPECT_EQ(found.documents, 3);
  EXPECT_EQ(found.sequences, 3);
  EXPECT_EQ(found.tokens, 6);
  EXPECT_EQ(found.ids.total(), 6);
  EXPECT_EQ(found.ids.distinct(), 4);
  EXPECT_EQ(found.ids.distinct_below(4), 3);
  EXPECT_EQ(found.ids.tokens_outside(4), 1);
  EXPECT_THAT(found.ids.most_frequent(3), ElementsAre(Pair(3, 3), Pair(0, 1), Pair(1, 1)));
  EXPECT_THAT(found.ids.ranked(), ElementsAre(3, 1, 1, 1));
  // 3/6 of 1 bit and 3 times 1/6 of log2(6) bits
  EXPECT_NEAR(found.ids.entropy(), 0.5 + std::log2(6) / 2, 1e-12);
  EXPECT_THAT(found.document_lengths.by_power_of_two(), ElementsAre(1, 0, 2));
  EXPECT_EQ(found.sequence_lengths.min(), 1);
  EXPECT_EQ(found.sequence_lengths.quantile(0.34), 2);
  EXPECT_EQ(found.sequence_lengths.mean(), 2);
}

TEST_F(Statistics, CountsIdsOutsideOfAnyVocabulary) {
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const auto found = statistics_of(stored<std::int32_t>({{{-1, 5, most, -1, 1 << 22}}}));
  EXPECT_THAT(found.ids.others, ElementsAre(Pair(-1, 2), Pair(1 << 22, 1), Pair(most, 1)));
  EXPECT_EQ(found.ids.count(-1), 2);
  EXPECT_EQ(found.ids.count(most), 1);
  EXPECT_EQ(found.ids.count(4), 0);
  EXPECT_EQ(found.ids.tokens_outside(6), 4);
  EXPECT_EQ(found.ids.distinct(), 4);
  const auto small = statistics_of(stored<std::int8_t>({{{-128, 127, -1, -1}}}));
  EXPECT_THAT(small.ids.others, ElementsAre(Pair(-128, 1), Pair(-1, 2)));
  EXPECT_EQ(small.ids.count(127), 1);
}

TEST_F(Statistics, RefusesWhatIsNoId) {
  std::vector<std::int64_t> many(std::size_t{1} << 20);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = -1 - static_cast<std::int64_t>(i);
  for (const int workers : {1, 4}) {
    try {
      statistics_of(stored<std::int64_t>({{many}}), {.workers = workers, .block_tokens = 1000});
      ADD_FAILURE() << "accepted";
    } catch (const config_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("not ids of a vocabulary"));
    }
  }
  EXPECT_THROW(statistics_of(stored<float>({{{1}}})), config_error);
  EXPECT_THROW(find_duplicates(only<double>({{{1}}})), config_error);
  EXPECT_THROW(find_repeated_ngrams(only<double>({{{1}}})), config_error);
  EXPECT_THROW(find_repeated_ngrams(only<std::uint16_t>({{{1}}}), {.n = 0}), config_error);
}

TEST_F(Statistics, OfNothingAreZero) {
  const auto found = statistics_of(stored<std::uint16_t>({}));
  EXPECT_EQ(found.ids.total() + found.ids.distinct() + found.document_lengths.max(), 0);
  EXPECT_EQ(found.ids.entropy(), 0);
  EXPECT_EQ(statistics_of(stored<std::uint16_t>({{}, {{}}})).document_lengths.count(), 2);
  EXPECT_EQ(find_duplicates(only<std::uint16_t>({{}, {}})).documents, 0);
  EXPECT_EQ(find_repeated_ngrams(only<std::uint16_t>({{}, {{1}}})).positions, 0);
  EXPECT_TRUE(find_duplicates({}).groups.empty());
  EXPECT_TRUE(find_repeated_ngrams({}).ngrams.empty());
}

TEST_F(Statistics, FindsDuplicatesAcrossTypes) {
  std::vector<indexed_dataset> data;
  data.push_back(stored<std::uint16_t>({{{1, 2}}, {{7}}, {{1}, {2}}, {}}, "a"));
  data.push_back(stored<std::int32_t>({{}, {{7}}, {{2, 1}}, {{1, 2}}, {{-1}}}, "b"));
  const auto found = find_duplicates(data);
  EXPECT_EQ(found.documents, 3);
  EXPECT_EQ(found.tokens, 5);
  ASSERT_EQ(found.group_count, 2);
  EXPECT_EQ(found.groups[0].copies, 3);
  EXPECT_THAT(found.groups[0].places,
              ElementsAre(document_place{0, 0}, document_place{0, 2}, document_place{1, 3}));
  EXPECT_THAT(found.groups[1].places, ElementsAre(document_place{0, 1}, document_place{1, 1}));
  const auto one = find_duplicates(data, {.groups = 1, .places = 1});
  ASSERT_EQ(one.groups.size(), 1U);
  EXPECT_THAT(one.groups[0].places, ElementsAre(document_place{0, 0}));
  EXPECT_EQ(one.documents, 3);
}

TEST_F(Statistics, FindsNgramsInsideDocumentsOnly) {
  // 1 2 is 3 times in documents, and once across two of them; 8 8 overlaps itself.
  const auto& data = only<std::uint16_t>({{{1, 2, 3, 1}}, {{2, 1}, {2, 9}}, {{8, 8, 8}}, {{1, 2}}});
  const auto found = find_repeated_ngrams(data, {.n = 2, .most = 5});
  EXPECT_EQ(found.positions, 9);
  EXPECT_EQ(found.distinct, 6);
  ASSERT_EQ(found.ngrams.size(), 2U);
  EXPECT_THAT(found.ngrams[0].ids, ElementsAre(1, 2));
  EXPECT_EQ(found.ngrams[0].count, 3);
  EXPECT_EQ(found.ngrams[0].first, (document_place{0, 0}));
  EXPECT_EQ(found.ngrams[0].first_token, 0);
  EXPECT_THAT(found.ngrams[1].ids, ElementsAre(8, 8));
  EXPECT_EQ(found.ngrams[1].count, 2);
}

TEST_F(Statistics, FindsContaminationAndItsTexts) {
  const auto& data =
      only<std::uint16_t>({{{1, 2, 3, 4}}, {{5, 1, 2, 3}}, {{1, 2}, {3, 9}}, {{2, 3, 1}}});
  const std::vector<std::vector<std::int64_t>> texts = {{7, 8, 9}, {0, 1, 2, 3, 4}, {1, 2}};
  const auto found = find_contamination(data, texts, 3, 2);
  EXPECT_EQ(found.documents, 3);
  EXPECT_EQ(found.tokens, 12);
  ASSERT_EQ(found.texts.size(), 3U);
  EXPECT_EQ(found.texts[0].found, 0);
  EXPECT_EQ(found.texts[1].ngrams, 3);
  EXPECT_EQ(found.texts[1].found, 2);
  EXPECT_EQ(found.texts[2].ngrams, 0);
  ASSERT_EQ(found.worst.size(), 2U);
  EXPECT_EQ(found.worst[0].place, (document_place{0, 0}));
  EXPECT_EQ(found.worst[0].ngrams, 2);
  EXPECT_EQ(found.worst[1].place, (document_place{0, 1}));
  EXPECT_EQ(found.worst[1].token, 1);
  EXPECT_EQ(found.worst[1].text, 1);
  EXPECT_THROW(find_contamination(data, texts, 0), config_error);
}

TEST_F(Statistics, FindsNearDuplicates) {
  std::vector<std::uint16_t> a(300);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint16_t>(i * i);
  auto b = a;
  b[150] = 7;  // changes 5 of 296 5-grams: 291 of 301 are the same
  auto c = a;
  for (std::size_t i = 0; i < c.size(); i += 3) c[i] = 9;
  const auto found = find_near_duplicates(only<std::uint16_t>({{a}, {c}, {b}, {a}, {{1, 2}}, {}}));
  EXPECT_EQ(found.compared, 4);
  EXPECT_EQ(found.documents, 2);
  EXPECT_EQ(found.tokens, 600);
  ASSERT_GE(found.pairs.size(), 2U);
  EXPECT_EQ(found.pairs[0].earlier, (document_place{0, 0}));
  EXPECT_EQ(found.pairs[0].later, (document_place{0, 3}));
  EXPECT_EQ(found.pairs[0].jaccard, 1);
  EXPECT_EQ(found.pairs[0].error, 0);
  EXPECT_NEAR(found.pairs[1].jaccard, 291.0 / 301, 0.09);
  EXPECT_NEAR(near_duplicate_options().chance(0.5), 1 - std::pow(1 - 0.0625, 32), 1e-12);
  for (const near_duplicate_options& wrong :
       {near_duplicate_options{.n = 0}, near_duplicate_options{.hashes = 100},
        near_duplicate_options{.bands = 3}, near_duplicate_options{.threshold = 0}}) {
    EXPECT_THROW(find_near_duplicates(data_, wrong), config_error);
  }
}

TEST_F(Statistics, CountTheTrainedTokensOfEachDocument) {
  const test::documents_of<std::uint16_t> documents = {
      {{1, 2, 3}}, {}, {{2, 4}, {6}}, {{5}, {}, {7, 8}}, {{9}}};
  const auto data = stored<std::uint16_t>(documents);
  EXPECT_FALSE(trained_lengths_of(data));
  test::write_odd_mask(data.prefix());
  const auto trained = trained_lengths_of(data);
  ASSERT_TRUE(trained);
  EXPECT_EQ(trained->count(), 5);
  EXPECT_EQ(trained->sum(), 5);
  EXPECT_EQ(trained->by_power_of_two(), (std::vector<std::int64_t>{2, 1, 2}));
}

TEST_F(Statistics, StopIfTheCallerThrows) {
  const std::vector<std::uint16_t> ids(100, 7);
  const auto& data = only<std::uint16_t>({{ids}, {ids}});
  statistics_options options{.workers = 3, .block_tokens = 10};
  options.progress = [](std::int64_t, std::int64_t) { throw std::runtime_error("stop"); };
  EXPECT_THROW(statistics_of(data[0], options), std::runtime_error);
  EXPECT_THROW(find_duplicates(data, {}, options), std::runtime_error);
  EXPECT_THROW(find_repeated_ngrams(data, {}, options), std::runtime_error);
  EXPECT_THROW(find_near_duplicates(data, {}, options), std::runtime_error);
  EXPECT_THROW(find_contamination(data, {}, 1, 1, options), std::runtime_error);
}

TEST_F(Statistics, ReportALostPage) {
  const std::vector<std::uint16_t> ids(10'000, 7);
  const auto data = stored<std::uint16_t>({{ids}});
  std::filesystem::resize_file(folder_ / "data.bin", 0);
  EXPECT_THROW(statistics_of(data), io_error);
}

}  // namespace
}  // namespace millrace::dataset
