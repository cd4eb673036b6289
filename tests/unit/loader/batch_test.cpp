// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/loader/batch_loader.hpp>

#include "unit/loader/stored_tokens.hpp"

namespace millrace::loader {
namespace {

// A batch must not be copyable, because two batches with the same slot would release it twice.
static_assert(!std::is_copy_constructible_v<batch> && !std::is_copy_assignable_v<batch>);
static_assert(std::is_nothrow_move_constructible_v<batch>);
static_assert(std::is_nothrow_move_assignable_v<batch>);

// With a look_ahead of 1, the loader has three slots. The dataset has enough samples for many
// batches.
class Batch : public testing::Test {
 protected:
  bool can_take_another() {
    try {
      return loader_->next().has_value();
    } catch (const config_error&) {
      return false;
    }
  }

  const loader_options options_ = {.batch_size = 2, .seq_len = 5, .look_ahead = 1, .held = 1};
  test::stored_tokens<> stored_{1000};
  std::optional<batch_loader> loader_{std::in_place, stored_.data(), options_};
};

TEST_F(Batch, HoldsItsSlotUntilItIsDestroyed) {
  const auto first = loader_->next();
  const auto second = loader_->next();
  {
    const auto third = loader_->next();
    EXPECT_FALSE(can_take_another());
  }
  EXPECT_TRUE(can_take_another());
}

TEST_F(Batch, HandsItsSlotOnWhenMoved) {
  const auto first = loader_->next();
  const auto second = loader_->next();
  batch third = std::move(*loader_->next());
  const auto* where = third.tokens().data();

  std::optional<batch> owner(std::move(third));
  EXPECT_EQ(owner->tokens().data(), where);
  EXPECT_FALSE(can_take_another());
  owner.reset();
  EXPECT_TRUE(can_take_another());
}

// A caller that assigns each new batch to the same variable must not need an extra slot for that.
TEST_F(Batch, GivesItsSlotBackWhenAssignedTo) {
  const auto first = loader_->next();
  batch second = std::move(*loader_->next());
  batch third = std::move(*loader_->next());
  EXPECT_FALSE(can_take_another());

  second = std::move(third);
  stored_.expect_batch(second, options_, 2);
  EXPECT_TRUE(can_take_another());
}

TEST_F(Batch, SurvivesAnAssignmentToItself) {
  batch only = std::move(*loader_->next());
  batch& same = only;
  only = std::move(same);
  stored_.expect_batch(only, options_, 0);
}

TEST_F(Batch, OfOneLoaderMayReplaceThatOfAnother) {
  batch_loader other(stored_.data(), {.batch_size = 1, .seq_len = 7});
  batch kept = std::move(*loader_->next());
  kept = std::move(*other.next());
  loader_.reset();
  stored_.expect_batch(kept, {.batch_size = 1, .seq_len = 7}, 0);
}

TEST_F(Batch, OutlivesLoaderAndDataset) {
  std::optional<batch> last = loader_->next();
  loader_.reset();
  stored_.close();
  stored_.expect_batch(*last, options_, 0);
  std::jthread([&last] { last.reset(); }).join();
}

TEST_F(Batch, MayBeDestroyedInAnyOrderOnAnyThread) {
  std::vector<std::optional<batch>> held;
  held.reserve(3);
  for (int i = 0; i < 3; ++i) held.push_back(loader_->next());
  std::int64_t next = 3;
  for (const std::size_t i : {1u, 0u, 2u, 2u, 1u, 0u, 0u, 2u, 1u}) {
    std::jthread([b = std::move(held[i])] {}).join();
    held[i] = loader_->next();
    stored_.expect_batch(*held[i], options_, next++);
  }
}

TEST_F(Batch, KeepsItsContentsWhileOthersAreMade) {
  std::optional<batch> first = loader_->next();
  for (std::int64_t m = 1; m < 50; ++m) stored_.expect_batch(*loader_->next(), options_, m);
  stored_.expect_batch(*first, options_, 0);
}

}  // namespace
}  // namespace millrace::loader
