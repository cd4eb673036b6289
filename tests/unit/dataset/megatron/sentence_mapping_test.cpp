// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/megatron/sentence_mapping.hpp>
#include <millrace/error.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

// Every sentence of a document that takes part is in one sample an epoch, and each sample is of one
// document.
TEST(MapSentences, DealsOutEachDocument) {
  const std::vector<std::int64_t> documents = {0, 4, 4, 5, 11};
  const std::vector<std::int32_t> lengths = {3, 4, 5, 6, 9, 1, 2, 3, 4, 5, 6};
  const auto runs =
      map_sentences(documents, lengths, {.epochs = 3, .most_samples = 1000, .most_tokens = 6});
  std::vector<int> times(lengths.size());
  for (const sentence_run& run : runs) {
    EXPECT_LT(run.first, run.last);
    EXPECT_EQ(run.tokens, 6);
    EXPECT_EQ(std::upper_bound(documents.begin(), documents.end(), run.first),
              std::upper_bound(documents.begin(), documents.end(), run.last - 1));
    for (std::int64_t i = run.first; i < run.last; ++i) ++times[static_cast<std::size_t>(i)];
  }
  // The document of one sentence is too short.
  EXPECT_THAT(times, testing::ElementsAre(3, 3, 3, 3, 0, 3, 3, 3, 3, 3, 3));
}

TEST(MapSentences, LeavesOutDocumentsWithALongSentence) {
  const std::vector<std::int64_t> documents = {0, 2, 4};
  const std::vector<std::int32_t> lengths = {513, 1, 512, 1};
  const auto runs = map_sentences(documents, lengths, {.most_samples = 1, .most_tokens = 100});
  EXPECT_EQ(runs, (std::vector<sentence_run>{{2, 4, 100}}));
}

// Megatron asks for 2^31 - 2 epochs where a number of samples is wanted.
TEST(MapSentences, EndsWhereNoEpochGivesAnything) {
  const std::vector<std::int64_t> documents = {0, 1};
  const std::vector<std::int32_t> lengths = {5};
  EXPECT_TRUE(map_sentences(documents, lengths,
                            {.epochs = std::numeric_limits<std::int32_t>::max() - 1,
                             .most_samples = 10,
                             .most_tokens = 8})
                  .empty());
}

TEST(MapSentences, RefusesWhatCannotBe) {
  const std::vector<std::int64_t> documents = {0};
  for (const double chance : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(
        (void)map_sentences(documents, {}, {.most_tokens = 8, .short_probability = chance}),
        config_error)
        << chance;
  }
  EXPECT_THROW((void)map_sentences(documents, {}, {.most_tokens = 0}), config_error);
  EXPECT_THROW((void)map_sentences(documents, {}, {.most_tokens = 1, .short_probability = 0.1}),
               config_error);
  EXPECT_TRUE(map_sentences(documents, {}, {.most_tokens = 2, .short_probability = 0.1}).empty());
}

}  // namespace
}  // namespace millrace::dataset
