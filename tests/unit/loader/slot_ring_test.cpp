// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/batch/slot_ring.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/seed.hpp"

namespace millrace::loader {
namespace {

using namespace std::chrono_literals;

struct slot {
  std::int64_t value = 0;  // unguarded on purpose: the producer writes it, the consumer reads it
};
using ring = slot_ring<slot>;

ring ring_of(std::size_t slots) {
  return ring(slots, [](std::size_t) { return slot{}; });
}

void publish(ring& r, std::int64_t value) {
  const ring::claim claim = r.acquire_free();
  ASSERT_NE(claim.slot, nullptr);
  claim.slot->value = value;
  r.publish(claim);
}

/// Ends the stream like a producer that has no more items.
void finish(ring& r, std::exception_ptr failure = nullptr) {
  const ring::claim claim = r.acquire_free();
  ASSERT_NE(claim.slot, nullptr);
  r.finish(claim.ticket, std::move(failure));
}

std::exception_ptr failure(const char* what) {
  return std::make_exception_ptr(std::runtime_error(what));
}

// Usually does not delay. Sometimes gives up the rest of the time slice, and sometimes sleeps so
// long that the other side runs out of work.
void random_delay(std::mt19937_64& random) {
  const auto choice = random() % 64;
  if (choice == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
  if (choice < 8) std::this_thread::yield();
}

TEST(SlotRing, MakesEachSlotOnce) {
  int made = 0;
  const ring r(5, [&](std::size_t i) {
    EXPECT_EQ(i, static_cast<std::size_t>(made));
    return slot{++made};
  });
  EXPECT_EQ(r.size(), 5);
  EXPECT_EQ(made, 5);
}

// For a consumer that holds only one slot at a time, the ring must need only one slot in addition
// to the slots that are filled ahead.
TEST(SlotRing, MakesMoreSlotsOnlyForAConsumerThatHoldsThem) {
  ring r(
      8, [](std::size_t) { return slot{}; }, slot_reuse::newest, 2, 3);
  EXPECT_EQ(r.made(), 3);
  for (std::int64_t value = 0; value < 20; ++value) {
    publish(r, value);
    r.release(r.take());
  }
  EXPECT_EQ(r.made(), 3);
  std::vector<slot*> held;
  for (std::int64_t value = 0; value < 8; ++value) {
    EXPECT_FALSE(r.all_held());
    publish(r, value);
    held.push_back(r.take());
    EXPECT_EQ(held.back()->value, value);
    EXPECT_EQ(r.made(), std::max<std::size_t>(3, held.size()));
  }
  EXPECT_TRUE(r.all_held());
  EXPECT_EQ(r.size(), 8);
  std::ranges::sort(held);
  EXPECT_EQ(std::unique(held.begin(), held.end()), held.end());
  for (slot* each : held) r.release(each);
}

TEST(SlotRing, EndsWithTheFailureToMakeASlot) {
  ring r(
      4,
      [](std::size_t i) {
        if (i == 2) throw std::runtime_error("no memory");
        return slot{};
      },
      slot_reuse::newest, 2, 1);
  publish(r, 0);
  publish(r, 1);
  slot* const first = r.take();
  slot* const second = r.take();
  EXPECT_EQ(r.acquire_free().slot, nullptr);
  EXPECT_THROW((void)r.take(), std::runtime_error);
  EXPECT_EQ(r.take(), nullptr);
  r.release(first);
  r.release(second);
}

TEST(SlotRing, GivesSlotsInTheOrderTheyWentIn) {
  ring r = ring_of(3);
  for (std::int64_t value = 0; value < 3; ++value) publish(r, value);
  for (std::int64_t value = 0; value < 100; ++value) {
    slot* s = r.take();
    ASSERT_NE(s, nullptr);
    EXPECT_EQ(s->value, value);
    r.release(s);
    publish(r, value + 3);
  }
}

TEST(SlotRing, TakesSlotsBackInAnyOrder) {
  ring r = ring_of(3);
  for (std::int64_t value = 0; value < 3; ++value) publish(r, value);
  std::vector<slot*> held = {r.take(), r.take(), r.take()};
  EXPECT_TRUE(r.all_held());

  r.release(held[1]);
  EXPECT_FALSE(r.all_held());
  publish(r, 3);
  EXPECT_EQ(r.take(), held[1]);
  EXPECT_EQ(held[0]->value, 0);
  EXPECT_EQ(held[1]->value, 3);
  EXPECT_EQ(held[2]->value, 2);
}

TEST(SlotRing, ReusesTheNewestOrTheOldestSlot) {
  for (const slot_reuse reuse : {slot_reuse::newest, slot_reuse::oldest}) {
    ring r(
        4, [](std::size_t) { return slot{}; }, reuse);
    for (std::int64_t value = 0; value < 4; ++value) publish(r, value);
    std::vector<slot*> held;
    for (std::int64_t value = 0; value < 4; ++value) held.push_back(r.take());
    for (const std::size_t which : {2U, 0U, 3U}) r.release(held[which]);
    std::vector<slot*> again;
    for (std::int64_t value = 4; value < 7; ++value) publish(r, value);
    for (std::int64_t value = 4; value < 7; ++value) again.push_back(r.take());
    std::vector<slot*> expected = {held[2], held[0], held[3]};
    if (reuse == slot_reuse::newest) std::ranges::reverse(expected);
    EXPECT_EQ(again, expected);
  }
}

// A ring of 5 slots may fill at most 2 of them ahead. A producer must then wait until the consumer
// takes one, even if slots are free.
TEST(SlotRing, FillsNoMoreSlotsAheadThanItMay) {
  ring r(
      5, [](std::size_t) { return slot{}; }, slot_reuse::oldest, 2);
  std::atomic<std::int64_t> published = 0;
  std::jthread producer([&] {
    for (std::int64_t value = 0; value < 50; ++value) {
      publish(r, value);
      ++published;
    }
  });
  std::deque<slot*> held;
  for (std::int64_t value = 0; value < 50; ++value) {
    const std::int64_t most = std::min<std::int64_t>(value + 2, 50);
    while (published < most) std::this_thread::yield();
    std::this_thread::sleep_for(1ms);
    EXPECT_EQ(published, most);
    held.push_back(r.take());
    EXPECT_EQ(held.back()->value, value);
    if (held.size() < 3) continue;  // 3 slots are held and 2 are filled ahead
    EXPECT_EQ(held.front()->value, value - 2);
    r.release(held.front());
    held.pop_front();
  }
}

TEST(SlotRing, EndsWithNull) {
  ring r = ring_of(2);
  publish(r, 7);
  finish(r);
  EXPECT_EQ(r.take()->value, 7);
  EXPECT_EQ(r.take(), nullptr);
  EXPECT_EQ(r.take(), nullptr);
}

TEST(SlotRing, MayBeEmpty) {
  ring r = ring_of(0);
  r.finish(0, nullptr);
  EXPECT_EQ(r.take(), nullptr);
  r.close();
  EXPECT_EQ(r.acquire_free().slot, nullptr);
}

// A failure must arrive after all good slots, and must not look like the normal end.
TEST(SlotRing, ThrowsAFailureOnceAndBehindWhatWasGood) {
  ring r = ring_of(4);
  publish(r, 0);
  publish(r, 1);
  finish(r, failure("disk on fire"));
  EXPECT_EQ(r.acquire_free().slot, nullptr);

  EXPECT_EQ(r.take()->value, 0);
  EXPECT_EQ(r.take()->value, 1);
  try {
    r.take();
    FAIL() << "the failure is lost";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "disk on fire");
  }
  EXPECT_EQ(r.take(), nullptr);
}

TEST(SlotRing, WakesAConsumerThatWaitsWhenTheProducerFails) {
  ring r = ring_of(2);
  std::jthread producer([&] {
    std::this_thread::sleep_for(10ms);
    finish(r, failure("late"));
  });
  EXPECT_THROW(r.take(), std::runtime_error);
}

TEST(SlotRing, WakesAProducerThatWaitsWhenClosed) {
  ring r = ring_of(1);
  publish(r, 0);
  slot* got = r.take();
  std::jthread producer([&] { EXPECT_EQ(r.acquire_free().slot, nullptr); });
  std::this_thread::sleep_for(10ms);
  r.close();
  producer.join();

  r.release(got);  // a second release has no effect
  EXPECT_EQ(r.acquire_free().slot, nullptr);
}

TEST(SlotRing, GivesWhatIsReadyThenNullWhenClosed) {
  ring r = ring_of(2);
  publish(r, 5);
  r.close();
  EXPECT_EQ(r.take()->value, 5);
  EXPECT_EQ(r.take(), nullptr);
}

/// Releases slots on a separate thread and in a different order.
class late_releaser {
 public:
  late_releaser(ring& r, std::uint64_t seed)
      : ring_(r), random_(seed), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  void give(slot* s) {
    const std::scoped_lock lock(mutex_);
    slots_.push_back(s);
    changed_.notify_one();
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !slots_.empty(); })) {
      if (random_() % 2 == 0) std::swap(slots_.front(), slots_.back());
      slot* s = slots_.front();
      slots_.pop_front();
      lock.unlock();
      random_delay(random_);
      s->value = -1;  // a late reader would see this value, and TSan would report it
      ring_.release(s);
      lock.lock();
    }
  }

  ring& ring_;
  std::mt19937_64 random_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<slot*> slots_;
  std::jthread thread_;
};

TEST(SlotRing, GivesTicketsInOrderWhicheverIsFilledFirst) {
  ring r = ring_of(3);
  const ring::claim first = r.acquire_free();
  const ring::claim second = r.acquire_free();
  const ring::claim third = r.acquire_free();
  EXPECT_EQ(first.ticket, 0);
  EXPECT_EQ(third.ticket, 2);
  first.slot->value = 1;
  second.slot->value = 2;
  third.slot->value = 3;
  r.publish(third);
  r.publish(second);
  std::jthread late([&] {
    std::this_thread::sleep_for(10ms);
    r.publish(first);
  });
  EXPECT_EQ(r.ready(), 0U) << "two are filled, but not the next one";
  EXPECT_EQ(r.take()->value, 1);
  EXPECT_EQ(r.ready(), 2U);
  EXPECT_EQ(r.take()->value, 2);
  EXPECT_EQ(r.take()->value, 3);
}

// A wait with a time limit must end early if the next slot is filled, or if no more slots will
// come.
TEST(SlotRing, WaitsForTheNextSlotOnlySoLong) {
  const auto in = [](std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
  };
  ring r = ring_of(2);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(r.wait_until(in(20ms)));
  EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
  {
    std::jthread late([&] {
      std::this_thread::sleep_for(10ms);
      publish(r, 7);
    });
    EXPECT_TRUE(r.wait_until(in(1h)));
  }
  EXPECT_TRUE(r.wait_until(in(0ms)));
  EXPECT_EQ(r.take()->value, 7);
  EXPECT_FALSE(r.wait_until(in(0ms)));
  std::jthread late([&] { finish(r, failure("broken")); });
  EXPECT_TRUE(r.wait_until(in(1h)));
  EXPECT_THROW((void)r.take(), std::runtime_error);
  EXPECT_TRUE(r.wait_until(in(0ms))) << "nothing follows";
}

// Slots before the first failure must be served, no matter which thread fills them. Slots after the
// first failure must not be served.
TEST(SlotRing, TakesTheFirstOfSeveralFailures) {
  ring r = ring_of(4);
  const ring::claim good = r.acquire_free();
  const ring::claim bad = r.acquire_free();
  const ring::claim worse = r.acquire_free();
  const ring::claim behind = r.acquire_free();
  r.publish(behind);
  r.finish(worse.ticket, failure("later"));
  r.finish(bad.ticket, failure("earlier"));
  r.finish(worse.ticket, failure("again"));
  EXPECT_EQ(r.acquire_free().slot, nullptr);
  good.slot->value = 5;
  r.publish(good);
  EXPECT_EQ(r.take()->value, 5);
  try {
    r.take();
    FAIL() << "the failure is lost";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "earlier");
  }
  EXPECT_EQ(r.take(), nullptr);
}

// Producers, a consumer and two releasing threads run at random speeds. The order must be kept, no
// slot may be in two places, and all slots must come back.
TEST(SlotRing, KeepsOrderAndSlotsAtAnySpeed) {
  std::mt19937_64 random(test::seed(1));
  for (std::size_t size = 1; size <= 6; ++size) {
    const std::size_t producers = 1 + size % 3;
    SCOPED_TRACE(testing::Message() << size << " slots, " << producers << " producers");
    constexpr std::int64_t values = 3000;
    ring r = ring_of(size);
    std::vector<std::jthread> threads;
    for (std::size_t p = 0; p < producers; ++p) {
      threads.emplace_back([&r, seed = random()] {
        std::mt19937_64 delays(seed);
        for (;;) {
          random_delay(delays);
          const ring::claim claim = r.acquire_free();
          if (claim.slot == nullptr) return;
          if (claim.ticket >= values) {
            r.finish(values, nullptr);
            return;
          }
          random_delay(delays);
          claim.slot->value = claim.ticket;
          r.publish(claim);
        }
      });
    }
    {
      late_releaser first(r, random());
      late_releaser second(r, random());
      for (std::int64_t value = 0; value < values; ++value) {
        random_delay(random);
        slot* s = r.take();
        ASSERT_NE(s, nullptr);
        ASSERT_EQ(s->value, value);
        (random() % 2 == 0 ? first : second).give(s);
      }
      EXPECT_EQ(r.take(), nullptr);
    }
    threads.clear();
    EXPECT_FALSE(r.all_held());
  }
}

// The ring may be closed at any time, no matter what the producer is doing.
TEST(SlotRing, ClosesAtAnyTime) {
  std::mt19937_64 random(test::seed(2));
  for (int round = 0; round < 300; ++round) {
    ring r = ring_of(1 + random() % 4);
    std::jthread producer([&r, seed = random()] {
      std::mt19937_64 delays(seed);
      for (std::int64_t value = 0;; ++value) {
        random_delay(delays);
        const ring::claim claim = r.acquire_free();
        if (claim.slot == nullptr) return;
        claim.slot->value = value;
        r.publish(claim);
      }
    });
    const auto takes = static_cast<std::int64_t>(random() % 20);
    for (std::int64_t value = 0; value < takes; ++value) {
      slot* s = r.take();
      ASSERT_EQ(s->value, value);
      r.release(s);
      random_delay(random);
    }
    r.close();
  }
}

}  // namespace
}  // namespace millrace::loader
