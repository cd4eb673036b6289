// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cuda/fake_cuda.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include <millrace/loader/cuda/detail/handles.hpp>
#include <millrace/loader/cuda/detail/stream_order.hpp>

#include "support/child_process.hpp"

// The simulated runtime must obey those rules of CUDA's documentation on which other tests rely.
// The comment on each test names the page that defines the rule.

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using test::virtual_time;
using testing::ElementsAre;
using testing::IsEmpty;

class FakeCuda : public testing::Test {
 protected:
  stream of(const owned_stream& owner) const { return owner.get().value; }
  event of(const owned_event& owner) const { return owner.get().value; }
  owned_stream blocking_stream() const {
    stream made = nullptr;
    EXPECT_EQ(api_.create_stream(&made, 0, 0), 0);
    return owned_stream({&api_, made});
  }
  template <class Call>
  static int on_another_thread(Call call) {
    int code = 0;
    std::jthread([&] { code = call(); }).join();
    return code;
  }

  fake_cuda cuda_;
  const cuda_api& api_ = fake_cuda::api();
  owned_stream stream_ = make_stream(api_);
  owned_stream other_ = make_stream(api_);
  owned_event event_ = make_host_event(api_);
};

// See cudaThreadExchangeStreamCaptureMode. Which calls a thread may make depends on its own mode,
// on the mode of each capture, and on the thread that began the capture.
TEST_F(FakeCuda, ACaptureForbidsUnsafeCallsAsItsModeSays) {
  struct rule {
    fake_cuda::capture_mode capture;
    fake_cuda::capture_mode thread;
    bool own_allowed;    // on the thread that captures
    bool other_allowed;  // on any other thread
  };
  constexpr auto global = fake_cuda::global, local = fake_cuda::thread_local_only,
                 relaxed = fake_cuda::relaxed;
  for (const rule& one : std::array<rule, 9>{{{global, global, false, false},
                                              {global, local, false, true},
                                              {global, relaxed, true, true},
                                              {local, global, false, true},
                                              {local, local, false, true},
                                              {local, relaxed, true, true},
                                              {relaxed, global, true, true},
                                              {relaxed, local, true, true},
                                              {relaxed, relaxed, true, true}}}) {
    for (const bool own : {true, false}) {
      SCOPED_TRACE(testing::Message() << one.capture << " " << one.thread << " " << own);
      ASSERT_EQ(cuda_.begin_capture(of(stream_), one.capture), 0);
      const bool allowed = own ? one.own_allowed : one.other_allowed;
      const auto act = [&] {
        int mode = one.thread;
        EXPECT_EQ(api_.exchange_capture_mode(&mode), 0);
        const int code = api_.synchronize_event(of(event_));
        EXPECT_EQ(api_.exchange_capture_mode(&mode), 0);
        return code;
      };
      EXPECT_EQ(own ? act() : on_another_thread(act), allowed ? 0 : fake_cuda::capture_unsupported);
      EXPECT_EQ(cuda_.end_capture(of(stream_)), allowed ? 0 : fake_cuda::capture_invalidated);
    }
  }
}

// See cudaStreamBeginCapture and cudaStreamEndCapture.
TEST_F(FakeCuda, ACaptureEndsWhereAndAsItBegan) {
  EXPECT_EQ(cuda_.begin_capture(nullptr), fake_cuda::capture_unsupported);
  EXPECT_EQ(cuda_.end_capture(of(stream_)), fake_cuda::capture_unmatched);
  ASSERT_EQ(cuda_.begin_capture(of(stream_)), 0);
  EXPECT_EQ(on_another_thread([&] { return cuda_.end_capture(of(stream_)); }),
            fake_cuda::capture_wrong_thread);
  EXPECT_EQ(cuda_.end_capture(of(stream_)), fake_cuda::capture_invalidated);
  ASSERT_EQ(cuda_.begin_capture(of(stream_), fake_cuda::relaxed), 0);
  EXPECT_EQ(on_another_thread([&] { return cuda_.end_capture(of(stream_)); }), 0);
}

// See the CUDA C++ Programming Guide, "Cross-stream Dependencies and Events".
TEST_F(FakeCuda, AStreamThatWaitsForACapturedEventIsCapturedAndMustJoin) {
  int ran = 0;
  const auto work = [&](const owned_stream& on) { cuda_.put(of(on), {}, [&] { ++ran; }); };
  const auto status = [&](const owned_stream& which) {
    int found = -1;
    EXPECT_EQ(api_.capture_status(of(which), &found), 0);
    return found;
  };
  for (const bool joins : {false, true}) {
    ASSERT_EQ(cuda_.begin_capture(of(stream_)), 0);
    work(stream_);
    ASSERT_EQ(api_.record_event(of(event_), of(stream_)), 0);
    ASSERT_EQ(api_.wait_event(of(other_), of(event_)), 0);
    EXPECT_EQ(status(other_), 1);
    work(other_);
    EXPECT_EQ(cuda_.end_capture(of(other_)), fake_cuda::capture_unmatched);
    if (joins) {
      ASSERT_EQ(api_.record_event(of(event_), of(other_)), 0);
      ASSERT_EQ(api_.wait_event(of(stream_), of(event_)), 0);
    }
    EXPECT_EQ(cuda_.end_capture(of(stream_)), joins ? 0 : fake_cuda::capture_unjoined);
    EXPECT_EQ(status(stream_) + status(other_), 0);
  }
  drain(api_, of(stream_));
  drain(api_, of(other_));
  EXPECT_EQ(ran, 0) << "graphs are never launched";
}

// See the CUDA C++ Programming Guide, "Prohibited and Unhandled Operations".
TEST_F(FakeCuda, NobodyMayWaitForWhatIsOnlyInAGraph) {
  int mode = fake_cuda::relaxed;
  ASSERT_EQ(api_.exchange_capture_mode(&mode), 0);
  const auto refused = [&](auto act) {
    EXPECT_EQ(cuda_.begin_capture(of(stream_)), 0);
    EXPECT_EQ(api_.record_event(of(event_), of(stream_)), 0);
    const int code = act();
    EXPECT_EQ(cuda_.end_capture(of(stream_)), fake_cuda::capture_invalidated);
    return code;
  };
  EXPECT_EQ(refused([&] { return api_.synchronize_event(of(event_)); }), fake_cuda::captured_event);
  EXPECT_EQ(refused([&] { return api_.query_event(of(event_)); }), fake_cuda::captured_event);
  EXPECT_EQ(refused([&] { return api_.synchronize_stream(of(stream_)); }),
            fake_cuda::capture_unsupported);
  EXPECT_EQ(api_.synchronize_event(of(event_)), fake_cuda::captured_event) << "also afterwards";
  EXPECT_EQ(api_.wait_event(of(other_), of(event_)), fake_cuda::captured_event);
  ASSERT_EQ(api_.record_event(of(event_), of(stream_)), 0);
  EXPECT_EQ(api_.synchronize_event(of(event_)), 0) << "it was recorded anew";
  ASSERT_EQ(api_.exchange_capture_mode(&mode), 0);
}

// See cudaErrorStreamCaptureIsolation and cudaErrorStreamCaptureMerge.
TEST_F(FakeCuda, ACaptureDependsOnNothingOutside) {
  ASSERT_EQ(api_.record_event(of(event_), of(other_)), 0);
  ASSERT_EQ(cuda_.begin_capture(of(stream_)), 0);
  EXPECT_EQ(api_.wait_event(of(stream_), of(event_)), fake_cuda::capture_isolation);
  EXPECT_EQ(api_.record_event(of(event_), of(stream_)), fake_cuda::capture_invalidated);
  EXPECT_EQ(cuda_.end_capture(of(stream_)), fake_cuda::capture_invalidated);

  ASSERT_EQ(cuda_.begin_capture(of(stream_)), 0);
  ASSERT_EQ(cuda_.begin_capture(of(other_)), 0);
  ASSERT_EQ(api_.record_event(of(event_), of(other_)), 0);
  EXPECT_EQ(api_.wait_event(of(stream_), of(event_)), fake_cuda::capture_merge);
  EXPECT_EQ(cuda_.end_capture(of(stream_)), fake_cuda::capture_invalidated);
  EXPECT_EQ(cuda_.end_capture(of(other_)), fake_cuda::capture_invalidated);
}

// See cudaStreamIsCapturing: "When a blocking stream is capturing, the legacy stream is in an
// unusable state".
TEST_F(FakeCuda, TheDefaultStreamIsUnusableDuringTheCaptureOfABlockingOne) {
  const owned_stream blocking = blocking_stream();
  int status = 0;
  ASSERT_EQ(cuda_.begin_capture(of(blocking)), 0);
  EXPECT_EQ(api_.capture_status(nullptr, &status), fake_cuda::capture_implicit);
  EXPECT_EQ(api_.last_error(), fake_cuda::capture_implicit);
  EXPECT_EQ(cuda_.end_capture(of(blocking)), 0) << "to ask does no harm";
  ASSERT_EQ(cuda_.begin_capture(of(blocking)), 0);
  EXPECT_EQ(api_.record_event(of(event_), nullptr), fake_cuda::capture_implicit);
  EXPECT_EQ(cuda_.end_capture(of(blocking)), fake_cuda::capture_invalidated);
  ASSERT_EQ(cuda_.begin_capture(of(stream_)), 0);
  EXPECT_EQ(api_.record_event(of(event_), nullptr), 0) << "that stream is not blocking";
  EXPECT_EQ(cuda_.end_capture(of(stream_)), 0);
}

// See "Stream synchronization behavior": the default stream and blocking streams wait for each
// other.
TEST_F(FakeCuda, BlockingStreamsAndTheDefaultStreamWaitForOneAnother) {
  const owned_stream blocking = blocking_stream();
  std::mutex mutex;
  std::string order;
  const auto put = [&](stream on, char name, std::chrono::microseconds late) {
    cuda_.put(on, {}, [&, name, late] {
      std::this_thread::sleep_for(late);
      const std::scoped_lock lock(mutex);
      order += name;
    });
  };
  put(of(blocking), 'a', 3ms);
  put(nullptr, 'b', 3ms);
  put(of(blocking), 'c', 0ms);
  drain(api_, of(blocking));
  EXPECT_EQ(order, "abc");
  put(of(blocking), 'd', 3ms);
  drain(api_, nullptr);
  EXPECT_EQ(order, "abcd");
}

// See cudaGetLastError: "Returns the last error that has been produced by any of the runtime calls
// in the same instance of the CUDA Runtime library in the host thread and resets it".
TEST_F(FakeCuda, EachThreadHasItsLastError) {
  EXPECT_EQ(on_another_thread([&] {
              EXPECT_EQ(api_.use_device(5), fake_cuda::invalid_device);
              return 0;
            }),
            0);
  EXPECT_EQ(api_.last_error(), 0);
  EXPECT_EQ(cuda_.error_left(), fake_cuda::invalid_device) << "the other thread has not taken it";
  EXPECT_EQ(api_.use_device(5), fake_cuda::invalid_device);
  EXPECT_EQ(api_.last_error(), fake_cuda::invalid_device);
  EXPECT_EQ(api_.last_error(), 0);
}

// See cudaEventQuery.
TEST_F(FakeCuda, AnEventIsNotReadyUntilItsStreamGetsThere) {
  EXPECT_EQ(api_.query_event(of(event_)), 0) << "never recorded";
  cuda_.delay(test::work_kind::other, 20ms);
  cuda_.put(of(stream_), {}, [] {});
  ASSERT_EQ(api_.record_event(of(event_), of(stream_)), 0);
  EXPECT_EQ(api_.query_event(of(event_)), fake_cuda::not_ready);
  EXPECT_EQ(api_.last_error(), fake_cuda::not_ready);
  drain(api_, of(stream_));
  EXPECT_EQ(api_.query_event(of(event_)), 0);
}

// See "Lazy Loading": the first call that needs a kernel loads it.
TEST_F(FakeCuda, KernelsAreLoadedOncePerDevice) {
  EXPECT_EQ(api_.find_kernels(), 0);
  EXPECT_EQ(api_.find_kernels(), 0);
  EXPECT_THAT(cuda_.loads(), ElementsAre("cudaFuncGetAttributes"));
  cuda_.refuse_kernels(fake_cuda::no_kernel_image);
  EXPECT_EQ(api_.find_kernels(), fake_cuda::no_kernel_image);
  batch_work work;
  work.rows = 1;
  EXPECT_EQ(api_.launch_batch(work, of(stream_)), fake_cuda::no_kernel_image);
}

// See "Environment variables": CUDA_DEVICE_MAX_CONNECTIONS.
TEST(FakeCudaQueues, OneQueueRunsWorkInOrderOfSubmission) {
  const char* set = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const std::string before = set == nullptr ? "" : set;
  for (const bool one_queue : {true, false}) {
    ASSERT_EQ(::setenv("CUDA_DEVICE_MAX_CONNECTIONS", one_queue ? "1" : "8", 1), 0);
    fake_cuda cuda;
    EXPECT_EQ(cuda.has_one_queue(), one_queue);
    const cuda_api& api = fake_cuda::api();
    const owned_stream slow = make_stream(api), fast = make_stream(api);
    const owned_event happened = make_event(api);
    std::mutex mutex;
    std::string order;
    std::atomic<bool> second_ran{false};
    const auto put = [&](const owned_stream& on, char name, virtual_time lasts) {
      cuda.put(
          on.get().value, {},
          [&, name] {
            while (name == 'a' && !one_queue && !second_ran) std::this_thread::sleep_for(1ms);
            const std::scoped_lock lock(mutex);
            order += name;
            second_ran = second_ran || name == 'b';
          },
          lasts);
    };
    put(slow, 'a', 30ms);
    record(api, happened.get().value, slow.get().value);
    put(fast, 'b', 0ms);
    wait(api, fast.get().value, happened.get().value);
    put(fast, 'c', 0ms);
    put(slow, 'd', 0ms);
    drain(api, slow.get().value);
    drain(api, fast.get().value);
    EXPECT_EQ(order.substr(0, one_queue ? 4 : 2), one_queue ? "abcd" : "ba");
    // In virtual time, work never begins before earlier work of the same queue. But the two may
    // overlap if the later work does not depend on the earlier work.
    EXPECT_EQ(cuda.times_of(fast.get().value)[0].begin, 0ms);
    EXPECT_EQ(cuda.times_of(fast.get().value)[1].begin, 30ms);
    EXPECT_THAT(cuda.faults(), IsEmpty());
  }
  if (set == nullptr) {
    ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  } else {
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", before.c_str(), 1);
  }
}

// Error 35 means that there is no driver, or that it is older than the runtime. Error 100 means
// that there is a driver, but no device.
TEST(FakeCudaStates, EveryCallFailsWithoutADriverOrADevice) {
  for (const int driver : {0, 12080, 13000, 13010}) {
    fake_cuda cuda;
    cuda.set_driver(driver);
    int count = 0, version = -1;
    EXPECT_EQ(fake_cuda::api().device_count(&count), driver < 13000 ? fake_cuda::no_driver : 0);
    EXPECT_EQ(fake_cuda::api().driver_version(&version), 0);
    EXPECT_EQ(version, driver);
  }
  fake_cuda cuda(1, 0);
  int count = 0;
  EXPECT_EQ(fake_cuda::api().device_count(&count), fake_cuda::no_device);
}

// Error 3: a process uses CUDA, so its forked children cannot. Error 4: the process is ending.
TEST(FakeCudaStates, EveryCallFailsInAForkedChildAndAtTheEnd) {
  fake_cuda cuda;
  int count = 0;
  EXPECT_EQ(test::in_child([&] { return fake_cuda::api().device_count(&count); }),
            fake_cuda::initialization_error);
  EXPECT_EQ(fake_cuda::api().device_count(&count), 0);
  cuda.unload();
  EXPECT_EQ(fake_cuda::api().device_count(&count), fake_cuda::unloading);
}

}  // namespace
}  // namespace millrace::loader::cuda
