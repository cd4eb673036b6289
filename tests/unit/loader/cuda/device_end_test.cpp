// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/device_loader.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/memory/bounded_end.hpp>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/faulty_reader.hpp"
#include "support/forked.hpp"
#include "unit/loader/stored_tokens.hpp"

// Tests how a pipe is interrupted and ends. Covers waits with a time limit, streams and reads that
// never finish, and forked child processes.

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::vector<test::random_batch> some_batches(std::size_t count) {
  std::mt19937_64 random(19);
  std::vector<test::random_batch> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(test::make_random_batch(random, {.rows = 2, .seq_len = 30}, {}));
  }
  return result;
}

/// A gate that blocks waiting code until the gate opens. The destructor opens the gate if it is
/// still closed.
class gate {
 public:
  ~gate() { open(); }
  void open() {
    if (!std::exchange(is_open_, true)) opens_.set_value();
  }
  std::function<void()> wait() const {
    return [opened = opened_] { opened.wait(); };
  }

 private:
  bool is_open_ = false;
  std::promise<void> opens_;
  std::shared_future<void> opened_{opens_.get_future()};
};

/// Waits until `ends_of_process` lists no unfinished end. Returns whether this happens in time.
bool all_ended() {
  for (int i = 0; i < 2000 && !ends_of_process().now.empty(); ++i) std::this_thread::sleep_for(5ms);
  return ends_of_process().now.empty();
}

class DeviceEnd : public testing::Test {
 protected:
  std::unique_ptr<device_pipe> pipe(const device_options& options) {
    return std::make_unique<device_pipe>(&fake_cuda::api(), source_.batches()[0].layout, options,
                                         source_.source());
  }
  /// Returns how long a call takes.
  static std::chrono::nanoseconds time_of(const std::function<void()>& act) {
    const auto began = std::chrono::steady_clock::now();
    act();
    return std::chrono::steady_clock::now() - began;
  }

  fake_cuda cuda_;
  test::pinned_source source_{&fake_cuda::api(), some_batches(12), 3};
  owned_stream stream_ = make_stream(fake_cuda::api());
  cuda::stream on_ = stream_.get().value;
  std::size_t alive_ = cuda_.alive();
};

TEST_F(DeviceEnd, AWaitMayBeCutIntoPieces) {
  gate storage;
  batch_source source = source_.source();
  source.count.reset();
  source.next = [next = source.next, wait = storage.wait(), n = 0]() mutable {
    if (n++ == 2) wait();
    return next();
  };
  device_pipe pipe(&fake_cuda::api(), source_.batches()[0].layout, {}, source);
  test::checking_consumer consumer(cuda_);
  std::size_t served = 0;
  const auto use = [&](const std::optional<device_batch>& batch) {
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->micro_batch(), static_cast<std::int64_t>(served));
    consumer.use(*batch, source_.batches()[served++], on_);
  };
  use(pipe.next_for(on_, 1h).batch);
  use(pipe.next_for(on_, 1h).batch);
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE(time_of([&] {
                const next_result<device_batch> none = pipe.next_for(on_, 10ms);
                EXPECT_TRUE(none.timed_out);
                EXPECT_FALSE(none.batch);
              }),
              10ms);
  }
  storage.open();
  use(pipe.next(on_));
  for (;;) {
    const next_result<device_batch> next = pipe.next_for(on_, 1h);
    EXPECT_FALSE(next.timed_out);
    if (!next.batch) break;
    use(next.batch);
  }
  EXPECT_EQ(served, 12U);
  const telemetry_report report = pipe.meter()->report();
  EXPECT_EQ(report.waits.count, 11) << "without the first batch";
  EXPECT_GE(report.waits.total_ns, 30'000'000) << "three pieces are one wait";
  drain(fake_cuda::api(), on_);
  EXPECT_THAT(consumer.wrong(), IsEmpty());
}

// The consumer's stream waits for another rank, which does not come. The batches are released, but
// the stream may still use their memory. So the memory is freed only after the stream is done.
TEST_F(DeviceEnd, DoesNotWaitForAStreamForEver) {
  gate other_rank;
  const std::int64_t ever = ends_of_process().ever;
  auto pipe_of_rank = pipe({.look_ahead = 1, .rank = 3, .end_within = 50ms});
  cuda_.put(on_, {}, other_rank.wait());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(pipe_of_rank->next(on_));
  const auto took = time_of([&] { pipe_of_rank.reset(); });
  EXPECT_GE(took, 50ms);
  EXPECT_LT(took, 20s);
  ASSERT_GE(ends_of_process().now.size(), 1U);
  EXPECT_THAT(
      ends_of_process().now[0],
      testing::AllOf(StartsWith("the "),
                     HasSubstr(" of rank 3 on device 0 did not end within 50 ms; its threads and "
                               "memory stay until it ends or the process exits")));
  EXPECT_GT(ends_of_process().ever, ever);
  EXPECT_GT(cuda_.alive(), alive_);
  other_rank.open();
  EXPECT_TRUE(all_ended());
  EXPECT_EQ(cuda_.alive(), alive_);
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

// The consumer's stream waits for another rank, and a batch is the last owner of the memory. The
// end of this batch must not wait for the stream forever.
TEST_F(DeviceEnd, ABatchThatOutlivesThePipeDoesNotWaitEither) {
  gate other_rank;
  auto pipe_of_rank = pipe({.end_within = 50ms});
  std::optional<device_batch> batch = pipe_of_rank->next(on_);
  pipe_of_rank.reset();
  EXPECT_THAT(ends_of_process().now, IsEmpty());
  cuda_.put(on_, {}, other_rank.wait());
  EXPECT_LT(time_of([&] { batch.reset(); }), 20s);
  EXPECT_THAT(ends_of_process().now,
              ElementsAre(StartsWith("the memory of the device pipe of rank 0 on device 0 did not "
                                     "end within 50 ms")));
  EXPECT_GT(cuda_.alive(), alive_);
  other_rank.open();
  EXPECT_TRUE(all_ended());
  EXPECT_EQ(cuda_.alive(), alive_);
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

// The source does not return and cannot be stopped. The thread that called it, and everything that
// this thread uses, must stay until the source returns.
TEST_F(DeviceEnd, DoesNotWaitForASourceForEver) {
  gate storage;
  gate asked;  // opens when the thread has called the source
  {
    const auto owned = std::make_shared<int>(7);  // must live as long as the thread
    batch_source source;
    source.next = [owned, &asked, wait = storage.wait()]() -> std::optional<staged_batch> {
      asked.open();
      wait();
      EXPECT_EQ(*owned, 7);
      return std::nullopt;
    };
    auto stuck =
        std::make_unique<device_pipe>(&fake_cuda::api(), source_.batches()[0].layout,
                                      device_options{.end_within = 50ms}, std::move(source));
    asked.wait()();
    EXPECT_LT(time_of([&] { stuck.reset(); }), 20s);
  }
  EXPECT_THAT(ends_of_process().now, ElementsAre(StartsWith("the device pipe of rank 0")));
  storage.open();
  EXPECT_TRUE(all_ended());
  for (int i = 0; i < 2000 && cuda_.alive() != alive_; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(cuda_.alive(), alive_);
  // The pipe is deleted on another thread, which the analyzer does not see.
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

// The storage of the loader hangs, but the loader's destructor must return. The destructor can stop
// the pipe's thread, which only waits for threads of the host loader. These threads stay until the
// storage answers.
TEST_F(DeviceEnd, ALoaderDoesNotWaitForItsStorageForEver) {
  const test::stored_tokens stored(200);
  gate storage;
  loader_options options{.batch_size = 1, .seq_len = 10, .end_within = 50ms};
  options.reader = [wait = storage.wait()](const std::vector<data_file>& files) {
    return std::make_unique<test::faulty_reader>(std::make_unique<pread_reader>(files),
                                                 [wait](std::int64_t n) {
                                                   if (n >= 2) wait();
                                                 });
  };
  {
    auto loader = std::make_unique<device_loader>(stored.data(), options, device_loader_options{},
                                                  &fake_cuda::api());
    EXPECT_TRUE(loader->next_for(on_, 1h).batch);
    EXPECT_TRUE(loader->next(on_));
    EXPECT_TRUE(loader->next_for(on_, 10ms).timed_out);
    EXPECT_EQ(loader->consumed_samples(), 2);
    EXPECT_LT(time_of([&] { loader.reset(); }), 20s);
    EXPECT_THAT(ends_of_process().now,
                ElementsAre(StartsWith("the batch_loader of rank 0 did not end within 50 ms")));
    storage.open();
    EXPECT_TRUE(all_ended());
  }
  EXPECT_EQ(cuda_.alive(), alive_);
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

// A forked child has none of the pipe's threads, and CUDA does not work in it. Calls must not hang
// or call CUDA, and the error of next() must say what to do.
TEST_F(DeviceEnd, AForkedChildLeavesThePipeAlone) {
  auto parent = pipe({.look_ahead = 2});
  std::optional<device_batch> held = parent->next(on_);
  std::this_thread::sleep_for(20ms);  // by then, the pipe's thread waits for a slot
  const auto said = [&](const std::function<void()>& act) {
    return test::in_forked_child([&] {
      act();
      return std::string("done");
    });
  };
  EXPECT_THAT(said([&] { (void)parent->next(on_); }),
              testing::MatchesRegex(
                  "threw this device_pipe was created by process [0-9]+, and its threads do not "
                  "exist in process [0-9]+, which was forked from it: create the loader after the "
                  "fork, or start workers as new processes .*spawn.*"));
  EXPECT_THAT(said([&] { (void)parent->next_for(on_, 1s); }), StartsWith("threw this device_pipe"));
  EXPECT_EQ(said([&] {
              held.reset();
              parent.reset();
            }),
            "done");
  EXPECT_EQ(said([&] {
              parent.reset();
              held.reset();
            }),
            "done");
  EXPECT_TRUE(parent->next(on_)) << "the parent's is as it was";
}

TEST_F(DeviceEnd, AForkedChildLeavesTheLoaderAlone) {
  const test::stored_tokens stored(200);
  auto parent =
      std::make_unique<device_loader>(stored.data(), loader_options{.batch_size = 1, .seq_len = 10},
                                      device_loader_options{}, &fake_cuda::api());
  std::optional<device_batch> held = parent->next(on_);
  const auto said = [&](const std::function<void()>& act) {
    return test::in_forked_child([&] {
      act();
      return std::string("done");
    });
  };
  EXPECT_THAT(said([&] { (void)parent->next(on_); }), StartsWith("threw this device_pipe was"));
  EXPECT_THAT(said([&] { (void)parent->state(); }), StartsWith("threw this batch_loader was"));
  EXPECT_THAT(said([&] { parent->load_state(dataset::run_state{}); }),
              StartsWith("threw this batch_loader was"));
  EXPECT_EQ(said([&] {
              parent.reset();
              held.reset();
            }),
            "done");
  EXPECT_TRUE(parent->next(on_));
}

}  // namespace
}  // namespace millrace::loader::cuda
