// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/batch_loader.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/error.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// 25 documents of one token each, 0 to 24: six samples of four tokens in stored order.
class BatchReader : public testing::Test {
 protected:
  std::shared_ptr<const dataset::run> run() {
    const auto prefix = folder_ / "numbers";
    test::documents_of<std::uint16_t> documents;
    for (std::uint16_t i = 0; i < 25; ++i) documents.push_back({{i}});
    test::write_dataset(prefix, documents);
    return std::make_shared<const dataset::stored_run>(
        std::make_shared<const dataset::indexed_dataset>(prefix), 4);
  }

 private:
  test::temp_folder folder_;
};

TEST_F(BatchReader, ReadsAnyMicroBatchOfAnyRank) {
  batch_reader reader(run(), {.batch_size = 1, .world_size = 2});
  const batch last = reader.at({.step = 2, .rank = 1});
  const batch first = reader.at({.step = 0, .rank = 0});
  EXPECT_THAT(last.tokens(), ElementsAre(20, 21, 22, 23));
  EXPECT_THAT(last.labels(), ElementsAre(21, 22, 23, 24));
  EXPECT_EQ(last.step(), 2);
  EXPECT_EQ(last.first_sample(), 5);
  EXPECT_THAT(first.tokens(), ElementsAre(0, 1, 2, 3));
}

TEST_F(BatchReader, ReadsGivenPositions) {
  batch_reader reader(run(), {.batch_size = 3});
  const std::vector<std::int64_t> positions = {5, 0};
  EXPECT_THAT(reader.read(positions).tokens(), ElementsAre(20, 21, 22, 23, 0, 1, 2, 3));
}

TEST_F(BatchReader, BatchesOutliveTheReader) {
  std::optional<batch_reader> reader(std::in_place, run(), loader_options{.batch_size = 2});
  const batch read = reader->at({.step = 1});
  reader.reset();
  EXPECT_THAT(read.tokens(), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
}

// Six samples for two ranks of two rows: the last micro-batch has two rows on rank 0, none on 1.
TEST_F(BatchReader, ReadsTheShortLastMicroBatch) {
  const loader_options options{.batch_size = 2, .world_size = 2, .drop_last = false};
  batch_reader reader(run(), options);
  EXPECT_EQ(reader.at({.step = 1, .rank = 0}).layout().rows(), 2);
  EXPECT_EQ(reader.at({.step = 1, .rank = 1}).layout().rows(), 0);
  EXPECT_THAT([&] { reader.at({.step = 2}); }, ThrowsMessage<config_error>(HasSubstr("sample 8")));
}

TEST_F(BatchReader, NamesWhatDoesNotExist) {
  batch_reader reader(run(), {.batch_size = 1, .world_size = 2, .global_batch_size = 4});
  const auto refuses = [&](const batch_place& place, const std::string& why) {
    EXPECT_THAT([&] { reader.at(place); }, ThrowsMessage<config_error>(HasSubstr(why)));
  };
  refuses({.step = 0, .rank = 2}, "rank is 2, expected 0 to 1");
  refuses({.step = 0, .rank = -1}, "rank is -1, expected 0 to 1");
  refuses({.step = 0, .rank = 0, .micro_batch = 2}, "micro_batch is 2, expected 0 to 1");
  refuses({.step = 0, .rank = 0, .micro_batch = -1}, "micro_batch is -1, expected 0 to 1");
  refuses({.step = -1}, "step is -1, expected 0 to ");
  refuses({.step = std::numeric_limits<std::int64_t>::max()}, "expected 0 to ");
  refuses({.step = 1, .rank = 0, .micro_batch = 1}, "the run has only 6");
  const std::vector<std::int64_t> behind = {6};
  EXPECT_THAT([&] { reader.read(behind); },
              ThrowsMessage<config_error>(HasSubstr("position is 6, expected 0 to 5")));
  const std::vector<std::int64_t> two = {0, 1};
  EXPECT_THAT([&] { reader.read(two); },
              ThrowsMessage<config_error>(HasSubstr("there are 2 positions, expected at most")));
}

}  // namespace
}  // namespace millrace::loader
