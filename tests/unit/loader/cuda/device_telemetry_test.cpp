// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/detail/device_telemetry.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/cuda/device_loader.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/telemetry/report_text.hpp>

#include "support/fake_cuda/fake_cuda.hpp"
#include "support/faulty_reader.hpp"
#include "support/sanitized.hpp"
#include "unit/loader/stored_tokens.hpp"

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;

/// A device loader with a single slow part.
struct slow_device {
  const char* name;
  stall_cause cause;
  bool on_device = true;
  std::function<void()> in_reader = [] {};
  bool asked_first = false;  // storage does not read a batch before the consumer asks for it
  std::chrono::microseconds copy{0};  // duration of a copy on the device
  std::chrono::microseconds step{0};  // duration of the consumer's work on its stream
  std::chrono::milliseconds held{0};  // how long the consumer holds all slots
};

void PrintTo(const slow_device& each, std::ostream* out) {
  *out << each.name;
}

constexpr int batches = 48;

telemetry_report report_of(const slow_device& slow) {
  const test::stored_tokens stored(2000);
  fake_cuda cuda(1);
  cuda.jitter(0us);
  cuda.delay(test::work_kind::copy, slow.copy);
  loader_options options = {.batch_size = 1, .seq_len = 10, .look_ahead = 2};
  std::atomic<std::int64_t> asked_for = -1;  // the batch that the consumer waits for
  std::atomic<bool> serving = true;
  options.reader = [&](const std::vector<data_file>& files) {
    return std::make_unique<test::faulty_reader>(
        std::make_unique<pread_reader>(files), [&](std::int64_t batch) {
          // Before each fourth batch, the consumer holds all slots. Wait until it asks for this
          // batch. Spin, because sleeping would look like waiting for storage.
          const bool waits = slow.asked_first && batch >= 4 && batch % 4 == 0;
          while (waits && asked_for.load() < batch && serving.load()) std::this_thread::yield();
          slow.in_reader();
        });
  };
  telemetry_report report;
  std::array<stall_counts, 4> starting{};  // the stalls of the first round are caused by the start
  {
    device_loader loader(stored.data(), options, {.held = 1, .no_device = no_device_rule::host},
                         slow.on_device ? &fake_cuda::api() : nullptr);
    const owned_stream stream = make_stream(fake_cuda::api());
    std::vector<device_batch> held;
    for (int i = 0; i < batches; ++i) {
      if (i == 4) starting = loader.time_report().stalls;
      asked_for = i;
      held.push_back(*loader.next(stream.get().value));
      EXPECT_EQ(held.back().on_device(), slow.on_device);
      if (slow.step.count() > 0) {
        cuda.put(stream.get().value, {}, [&] { std::this_thread::sleep_for(slow.step); });
      }
      if (slow.held.count() > 0 && held.size() < 4) continue;
      std::this_thread::sleep_for(slow.held);
      held.clear();
    }
    serving = false;
    report = loader.time_report();
    const telemetry_report host = loader.host().meter()->report();
    EXPECT_GE(host.bytes, report.bytes) << "what was read is the host's to tell";
    EXPECT_GE(report.bytes, std::int64_t{batches} * 11 * 2);
    drain(fake_cuda::api(), stream.get().value);
  }
  EXPECT_THAT(cuda.faults(), testing::IsEmpty());
  EXPECT_EQ(cuda.error_left(), 0);
  for (std::size_t i = 0; i < starting.size(); ++i) {
    report.stalls[i].stalls -= starting[i].stalls;
    report.stalls[i].waited_ns -= starting[i].waited_ns;
  }
  return report;
}

class DeviceStalls : public testing::TestWithParam<slow_device> {};

// Each test injects one cause, which must then have by far the most stalls. A busy machine adds
// other stalls, so one successful attempt is enough.
TEST_P(DeviceStalls, AreNamed) {
  if (test::under_address_sanitizer || test::under_thread_sanitizer) {
    GTEST_SKIP() << "what the sanitizer takes makes stalls of every kind";
  }
  std::string said;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const telemetry_report report = report_of(GetParam());
    EXPECT_EQ(report.batches, batches);
    EXPECT_EQ(report.slots, 4);
    EXPECT_GE(report.stages[static_cast<std::size_t>(loader_stage::copy)].count, batches);
    std::int64_t all = 0;
    for (const stall_counts& each : report.stalls) all += each.stalls;
    const std::int64_t named = report.stalls[static_cast<std::size_t>(GetParam().cause)].stalls;
    const bool enough = all >= (GetParam().held.count() > 0 ? 8 : 40);
    if (enough && static_cast<double>(named) >= 0.95 * static_cast<double>(all)) return;
    said += text_of(report) + '\n';
  }
  FAIL() << said;
}

void spin(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}
void sleep_long() {
  std::this_thread::sleep_for(10ms);
}
void spin_long() {
  spin(15ms);  // long in comparison with scheduling delays
}
// Delays the next batch a little, for the cases in which the consumer holds all slots. The reported
// cause must still be the consumer.
void spin_short() {
  spin(300us);
}

INSTANTIATE_TEST_SUITE_P(
    All, DeviceStalls,
    testing::Values(
        slow_device{.name = "storage", .cause = stall_cause::storage, .in_reader = sleep_long},
        slow_device{.name = "gather", .cause = stall_cause::gather, .in_reader = spin_long},
        slow_device{.name = "copy", .cause = stall_cause::copy, .copy = 10ms},
        slow_device{.name = "stream", .cause = stall_cause::consumer, .step = 30ms},
        slow_device{.name = "consumer",
                    .cause = stall_cause::consumer,
                    .in_reader = spin_short,
                    .asked_first = true,
                    .held = 30ms},
        slow_device{.name = "storage_without_device",
                    .cause = stall_cause::storage,
                    .on_device = false,
                    .in_reader = sleep_long},
        slow_device{.name = "consumer_without_device",
                    .cause = stall_cause::consumer,
                    .on_device = false,
                    .in_reader = spin_short,
                    .asked_first = true,
                    .held = 30ms}),
    [](const auto& each) { return std::string(each.param.name); });

// A single trace has the events of both the host and the pipe, with a track for each thread.
TEST(DeviceTelemetry, TracesHostAndPipe) {
  const test::stored_tokens stored(2000);
  fake_cuda cuda(1);
  loader_options options = {.batch_size = 1, .seq_len = 10, .look_ahead = 2, .threads = 2};
  options.trace_events = 1024;
  device_loader loader(stored.data(), options, {}, &fake_cuda::api());
  for (int i = 0; i < 20; ++i) (void)loader.next(nullptr);
  const std::vector<trace_event> events = loader.trace();
  std::vector<int> of_thread(3);
  int waits = 0;
  std::int64_t before = 0;
  for (const trace_event& each : events) {
    EXPECT_GE(each.begin_ns, before);
    before = each.begin_ns;
    waits += each.kind == trace_kind::wait ? 1 : 0;
    if (each.kind >= trace_kind::wait) continue;
    ASSERT_LT(each.detail, 3);
    ++of_thread[each.detail];
    if (each.kind == trace_kind::slot_wait) continue;
    EXPECT_EQ(each.kind == trace_kind::copy, each.detail == 2) << "the pipe copies, and only it";
  }
  EXPECT_EQ(waits, 20);
  for (const int count : of_thread) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace millrace::loader::cuda
