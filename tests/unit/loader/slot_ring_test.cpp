// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/slot_ring.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/seed.hpp"

namespace millrace::loader {
namespace {

using namespace std::chrono_literals;

struct slot {
  std::int64_t value = 0;  // written by the producer, read by the consumer: unguarded on purpose
};
using ring = slot_ring<slot>;

ring ring_of(std::size_t slots) {
  return ring(slots, [] { return slot{}; });
}

void publish(ring& r, std::int64_t value) {
  slot* s = r.acquire_free();
  ASSERT_NE(s, nullptr);
  s->value = value;
  r.publish(s);
}

std::exception_ptr failure(const char* what) {
  return std::make_exception_ptr(std::runtime_error(what));
}

// Mostly nothing, sometimes the rest of a time slice, sometimes long enough for the other side to
// run dry.
void random_delay(std::mt19937_64& random) {
  const auto choice = random() % 64;
  if (choice == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
  if (choice < 8) std::this_thread::yield();
}

TEST(SlotRing, MakesEachSlotOnce) {
  int made = 0;
  const ring r(5, [&] { return slot{++made}; });
  EXPECT_EQ(r.size(), 5);
  EXPECT_EQ(made, 5);
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

TEST(SlotRing, EndsWithNull) {
  ring r = ring_of(2);
  publish(r, 7);
  r.finish(nullptr);
  EXPECT_EQ(r.take()->value, 7);
  EXPECT_EQ(r.take(), nullptr);
  EXPECT_EQ(r.take(), nullptr);
}

TEST(SlotRing, MayBeEmpty) {
  ring r = ring_of(0);
  r.finish(nullptr);
  EXPECT_EQ(r.take(), nullptr);
  r.close();
  EXPECT_EQ(r.acquire_free(), nullptr);
}

// A failure must not overtake what was good, and must not look like a good end.
TEST(SlotRing, ThrowsAFailureOnceAndBehindWhatWasGood) {
  ring r = ring_of(4);
  publish(r, 0);
  publish(r, 1);
  ASSERT_NE(r.acquire_free(), nullptr);  // the one that fails
  r.finish(failure("disk on fire"));

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
    r.finish(failure("late"));
  });
  EXPECT_THROW(r.take(), std::runtime_error);
}

TEST(SlotRing, WakesAProducerThatWaitsWhenClosed) {
  ring r = ring_of(1);
  publish(r, 0);
  slot* got = r.take();
  std::jthread producer([&] { EXPECT_EQ(r.acquire_free(), nullptr); });
  std::this_thread::sleep_for(10ms);
  r.close();
  producer.join();

  r.release(got);  // a slot that is free again changes nothing
  EXPECT_EQ(r.acquire_free(), nullptr);
}

TEST(SlotRing, GivesWhatIsReadyThenNullWhenClosed) {
  ring r = ring_of(2);
  publish(r, 5);
  r.close();
  EXPECT_EQ(r.take()->value, 5);
  EXPECT_EQ(r.take(), nullptr);
}

/// Releases slots on a thread of its own, in an order of its own.
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
      s->value = -1;  // who still reads it now would see it, and so would the thread sanitizer
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

// Producer, consumer and two that release, all at random speeds: the order is kept, no slot is in
// two places, and all come back.
TEST(SlotRing, KeepsOrderAndSlotsAtAnySpeed) {
  std::mt19937_64 random(test::seed(1));
  for (std::size_t size = 1; size <= 6; ++size) {
    SCOPED_TRACE(testing::Message() << size << " slots");
    constexpr std::int64_t values = 3000;
    ring r = ring_of(size);
    std::jthread producer([&r, seed = random()] {
      std::mt19937_64 delays(seed);
      for (std::int64_t value = 0; value < values; ++value) {
        random_delay(delays);
        publish(r, value);
      }
      r.finish(nullptr);
    });
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
      while (r.all_held()) std::this_thread::yield();
      // Every slot is free in the end, each once.
      std::set<slot*> all;
      while (all.size() < size) ASSERT_TRUE(all.insert(r.acquire_free()).second);
    }
  }
}

// Whatever the producer is doing then.
TEST(SlotRing, ClosesAtAnyTime) {
  std::mt19937_64 random(test::seed(2));
  for (int round = 0; round < 300; ++round) {
    ring r = ring_of(1 + random() % 4);
    std::jthread producer([&r, seed = random()] {
      std::mt19937_64 delays(seed);
      for (std::int64_t value = 0;; ++value) {
        random_delay(delays);
        slot* s = r.acquire_free();
        if (s == nullptr) return;
        s->value = value;
        r.publish(s);
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
