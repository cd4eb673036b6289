// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/fragment_cache.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

// The ids that the batch of a cache copies for a text of one fragment. Empty if it stops.
ids_list copied_by_batch(fragment_cache& cache, std::string_view fragment) {
  word_batch& batch = cache.batch();
  batch.start(fragment.data(), fragment.size());
  const std::array<std::size_t, 1> ends = {fragment.size()};
  EXPECT_EQ(batch.fill(ends), 1U);
  ids_list ids(batch.max_ids() + word_batch::long_table::ids::capacity);
  std::int32_t* out = ids.data();
  const std::size_t stopped = batch.look_up(0, out);
  ids.resize(static_cast<std::size_t>(out - ids.data()));
  EXPECT_EQ(stopped, ids.empty() ? 0U : 1U);
  return ids;
}

ids_list many_ids() {
  ids_list ids(20);
  std::iota(ids.begin(), ids.end(), 100);
  return ids;
}

class FragmentCache : public testing::TestWithParam<std::string> {
 protected:
  shared_pretoken_cache shared_{1 << 20};
  fragment_cache cache_{1 << 20, shared_, best_instruction_set()};
};

TEST_P(FragmentCache, TheBatchCopiesIdsThatDoNotFitInATable) {
  const std::string fragment = GetParam();
  const ids_list ids = many_ids();
  EXPECT_FALSE(cache_.put(fragment, ids));
  EXPECT_EQ(copied_by_batch(cache_, fragment), ids_list());
  const auto place = cache_.overflow().put(fragment, ids);
  cache_.put_special(fragment, place);
  EXPECT_EQ(copied_by_batch(cache_, fragment), ids);
  cache_.put_special(fragment);
  EXPECT_EQ(copied_by_batch(cache_, fragment), ids_list());
  // Of a record that begins with something else.
  cache_.set_place(fragment, {place.begin + 1, place.count - 1, place.generation});
  EXPECT_EQ(copied_by_batch(cache_, fragment), ids_list(ids.begin() + 1, ids.end()));
}

TEST_P(FragmentCache, TheBatchStopsWhenTheIdsWereDropped) {
  const std::string fragment = GetParam();
  const ids_list ids = many_ids();
  const auto place = cache_.overflow().put(fragment, ids);
  cache_.put_special(fragment, place);
  for (int i = 0; cache_.overflow().ids_at(place).data() != nullptr; ++i) {
    ASSERT_LT(i, 1 << 20);
    cache_.overflow().put("another fragment " + std::to_string(i), ids);
  }
  EXPECT_EQ(copied_by_batch(cache_, fragment), ids_list());
}

TEST_P(FragmentCache, PlacesAreNotThoseOfAnotherEncoder) {
  const std::string fragment = GetParam();
  const ids_list ids = many_ids();
  cache_.put_special(fragment, cache_.overflow().put(fragment, ids));
  fragment_cache other(1 << 20, shared_, instruction_set::portable);
  other.overflow().put("something", ids_list(30, 7));
  id_buffer found;
  EXPECT_EQ(other.find(fragment, found), fragment_cache::answer::special);
  EXPECT_EQ(copied_by_batch(other, fragment), ids_list());
  other.set_place(fragment, other.overflow().put(fragment, ids));
  EXPECT_EQ(copied_by_batch(other, fragment), ids);
  EXPECT_EQ(copied_by_batch(cache_, fragment), ids);
}

INSTANTIATE_TEST_SUITE_P(KeySizes, FragmentCache,
                         testing::Values(" short", " longer than fifteen bytes"),
                         [](const auto& info) { return info.index == 0 ? "Short" : "Long"; });

}  // namespace
}  // namespace millrace::tokenizer::detail
