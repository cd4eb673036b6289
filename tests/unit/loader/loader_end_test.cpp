// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/detail/io/io_threads.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/memory/bounded_end.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/detail/state.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>
#include <millrace/loader/detail/verify/data_verifier.hpp>

#include "support/faulty_reader.hpp"
#include "support/forked.hpp"
#include "unit/loader/stored_tokens.hpp"

// Tests how a loader is interrupted and ends. Covers waits with a time limit, reads that do not
// return, and forked child processes.

namespace millrace::loader {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

/// A storage whose reads do not return until answer() is called.
class stuck_storage {
 public:
  /// @param from  index of the first read that is stuck; all later reads are stuck, too
  explicit stuck_storage(std::int64_t from) : from_(from) {}
  ~stuck_storage() { answer(); }

  make_reader_function reader() {
    return [this](const std::vector<data_file>& files) {
      return std::make_unique<test::faulty_reader>(
          std::make_unique<pread_reader>(files),
          [from = from_, answered = answered_](std::int64_t n) {
            if (n >= from) answered.wait();
          });
    };
  }
  void answer() {
    if (!std::exchange(has_answered_, true)) answers_.set_value();
  }

 private:
  std::int64_t from_;
  bool has_answered_ = false;
  std::promise<void> answers_;
  std::shared_future<void> answered_{answers_.get_future()};
};

/// Waits until `ends_of_process` lists no unfinished end. Returns whether this happens in time.
bool all_ended() {
  for (int i = 0; i < 2000 && !ends_of_process().now.empty(); ++i) std::this_thread::sleep_for(5ms);
  return ends_of_process().now.empty();
}

// A language binding splits a wait into short waits, so that it can handle signals between them. No
// batch may be lost between these waits. The end of the data must not look like a batch that is
// late.
TEST(LoaderEnd, AWaitMayBeCutIntoPieces) {
  const test::stored_tokens stored(100);
  stuck_storage storage(1);
  loader_options options{.batch_size = 1, .seq_len = 10};
  options.fields = {.tokens = true, .labels = true};
  options.reader = storage.reader();
  batch_loader loader(stored.data(), options);
  std::int64_t served = 0;
  stored.expect_batch(*loader.next_for(1h).batch, options, served++);
  for (int i = 0; i < 3; ++i) {
    const auto began = std::chrono::steady_clock::now();
    const next_result<batch> none = loader.next_for(10ms);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 10ms);
    EXPECT_TRUE(none.timed_out);
    EXPECT_FALSE(none.batch);
  }
  storage.answer();
  stored.expect_batch(*loader.next(), options, served++);
  for (;;) {
    const next_result<batch> next = loader.next_for(1h);
    EXPECT_FALSE(next.timed_out);
    if (!next.batch) break;
    stored.expect_batch(*next.batch, options, served++);
  }
  EXPECT_EQ(served, loader.micro_batches());
  EXPECT_FALSE(loader.next_for(0s).timed_out) << "it is over";
  const telemetry_report report = loader.meter()->report();
  EXPECT_EQ(report.batches, served);
  EXPECT_GE(report.waits.total_ns, 30'000'000) << "three pieces are one wait";
  EXPECT_EQ(report.waits.count, served - 1);
}

TEST(LoaderEnd, AWaitInPiecesThrowsAsAnyOther) {
  const test::stored_tokens stored(100);
  loader_options options{.batch_size = 1, .seq_len = 10};
  options.reader = [](const std::vector<data_file>& files) {
    return std::make_unique<test::faulty_reader>(std::make_unique<pread_reader>(files),
                                                 [](std::int64_t n) {
                                                   if (n == 1) throw error("broken");
                                                 });
  };
  batch_loader loader(stored.data(), options);
  EXPECT_TRUE(loader.next_for(1h).batch);
  EXPECT_THROW((void)loader.next_for(1h), error);
  EXPECT_FALSE(loader.next_for(1h).timed_out);
}

// A read does not return. The loader's destructor must return anyway, and `ends_of_process` must
// list the unfinished end. When the read returns, this end must finish.
TEST(LoaderEnd, DoesNotWaitForAStuckReadForEver) {
  const test::stored_tokens stored(100);
  stuck_storage storage(1);
  const std::int64_t ever = ends_of_process().ever;
  loader_options options{.batch_size = 1, .seq_len = 10, .rank = 0};
  options.reader = storage.reader();
  options.end_within = 50ms;
  std::optional<batch> outlives;
  const auto began = std::chrono::steady_clock::now();
  {
    batch_loader loader(stored.data(), options);
    outlives = loader.next();
    ASSERT_TRUE(outlives);
  }
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, 50ms);
  EXPECT_LT(took, 20s);
  EXPECT_THAT(ends_of_process().now,
              ElementsAre("the batch_loader of rank 0 did not end within 50 ms; its threads and "
                          "memory stay until it ends or the process exits"));
  EXPECT_EQ(ends_of_process().ever, ever + 1);
  storage.answer();
  EXPECT_TRUE(all_ended());
  EXPECT_EQ(ends_of_process().ever, ever + 1);
}

// A forked child has none of the loader's threads. Calls must report this, and nothing may hang.
TEST(LoaderEnd, AForkedChildLeavesTheLoaderAlone) {
  const test::stored_tokens stored(1000);
  stuck_storage storage(3);
  loader_options options{.batch_size = 1, .seq_len = 10, .threads = 2};
  options.reader = storage.reader();
  auto loader = std::make_unique<batch_loader>(stored.data(), options);
  std::optional<batch> held = loader->next();
  const auto said = [&](const std::function<void()>& act) {
    return test::in_forked_child([&] {
      act();
      return std::string("done");
    });
  };
  const auto refused = MatchesRegex(
      "threw this batch_loader was created by process [0-9]+, and its threads do not exist in "
      "process [0-9]+, which was forked from it: create the loader after the fork, or start "
      "workers as new processes \\(in Python: multiprocessing's \"spawn\"\\)");
  EXPECT_THAT(said([&] { (void)loader->next(); }), refused);
  EXPECT_THAT(said([&] { (void)loader->next_for(1s); }), refused);
  EXPECT_THAT(said([&] { (void)loader->state(); }), refused);
  EXPECT_THAT(said([&] { loader->load_state(dataset::run_state{}); }), refused);
  EXPECT_EQ(said([&] {
              held.reset();
              loader.reset();
            }),
            "done");
  storage.answer();
  EXPECT_TRUE(loader->next());  // the loader of the parent still works
}

// In a forked child, every class that owns threads must leave the threads of the parent alone.
TEST(LoaderEnd, AForkedChildLeavesEveryThreadAlone) {
  const auto outlived = [](auto& owner) {
    return test::in_forked_child([&] {
      owner.reset();
      return std::string("done");
    });
  };
  {
    std::promise<void> over;
    auto thread = std::make_unique<named_thread>(
        thread_setup{.name = "mr-test"}, [until = over.get_future().share()] { until.wait(); });
    EXPECT_EQ(outlived(thread), "done");
    over.set_value();
  }
  {
    auto threads = std::make_unique<io_threads>(3);
    threads->for_each(8, 4, [](std::size_t) { std::this_thread::sleep_for(1ms); });
    EXPECT_EQ(outlived(threads), "done");
  }
  const test::stored_tokens stored(100);
  {
    const dataset::stored_run run(stored.data(), 10);
    auto description = std::make_unique<run_description>(run, loader_options{.batch_size = 1});
    EXPECT_EQ(outlived(description), "done");
    EXPECT_THAT(test::in_forked_child([&] { return description->get().data[0].prefix; }),
                HasSubstr("threw this description of a run was created by process"));
  }
  {
    const std::vector<verified_file> files;
    verify_options verify;
    verify.mode = verify_mode::first_touch;
    auto verifier = std::make_unique<data_verifier>(files, verify);
    EXPECT_EQ(outlived(verifier), "done");
  }
}

// An object that is destroyed on a separate thread must be destroyed exactly once, before the call
// returns.
TEST(BoundedEnd, DestroysBeforeItReturnsIfItCan) {
  const std::int64_t ever = ends_of_process().ever;
  int destroyed = 0;
  struct counting {
    int* count;
    std::thread::id* on;
    ~counting() {
      ++*count;
      *on = std::this_thread::get_id();
    }
  };
  std::thread::id on;
  delete_within(1h, "a test", new counting{&destroyed, &on});
  EXPECT_EQ(destroyed, 1);
  EXPECT_NE(on, std::this_thread::get_id());
  EXPECT_EQ(ends_of_process().ever, ever);
  EXPECT_THAT(ends_of_process().now, IsEmpty());
}

}  // namespace
}  // namespace millrace::loader
