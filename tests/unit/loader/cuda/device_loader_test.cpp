// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/device_loader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/memory/cpu_list.hpp>
#include <millrace/loader/loader_report.hpp>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/faulty_reader.hpp"
#include "support/loader_runs.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::loader::cuda {
namespace {

using test::fake_cuda;
using testing::IsEmpty;

std::unique_ptr<device_loader> device_loader_of(const test::any_run& run,
                                                const loader_options& options,
                                                const device_loader_options& device,
                                                const cuda_api* api) {
  return std::visit(
      [&](const auto& each) { return std::make_unique<device_loader>(each, options, device, api); },
      run);
}

/// Converts a batch of the host loader for comparison.
test::random_batch batch_of_host(const batch& from) {
  const auto all = [](auto span) { return std::vector(span.begin(), span.end()); };
  test::random_batch result{from.layout(), {}, 0, {}, {}};
  result.expected = {all(from.tokens()),    all(from.labels()),     all(from.position_ids()),
                     all(from.loss_mask()), all(from.cu_seqlens()), from.max_seqlen()};
  return result;
}

/// A folder of three datasets, and a run over them.
struct stored_run {
  stored_run(test::run_kind kind, bool blend) {
    request.kind = kind;
    request.blend = blend;
    request.seq_len = 24;
    request.samples = 60;
    request.pad_documents_to = 2;
    run.emplace(test::run_of(request, prefixes));
  }
  test::temp_folder folder{test::quick_folder()};
  std::vector<std::filesystem::path> prefixes = test::store_three(folder, 7);
  test::run_request request;
  std::optional<test::any_run> run;
};

// Tests every order, plain and packed, on a device with random delays and without a device.
TEST(DeviceLoader, ServesWhatTheHostsLoaderServes) {
  std::mt19937_64 random(test::seed(77));
  for (int round = 0; round < 24; ++round) {
    const stored_run stored(static_cast<test::run_kind>(round % 3), round % 2 == 0);
    SCOPED_TRACE(testing::Message() << "round " << round << ": " << name_of(stored.request.kind));
    loader_options options;
    options.batch_size = 3;
    options.field_rules.eod = static_cast<std::int64_t>(random() % 300);
    options.field_rules.reset_position_ids = random() % 2 == 0;
    options.field_rules.eod_mask_loss = random() % 2 == 0;
    loader_options on_host = options;
    on_host.fields = test::all_fields;
    const auto host = test::loader_of(*stored.run, on_host);

    fake_cuda cuda(random());
    const bool device = round % 4 != 3;
    const owned_stream stream = make_stream(fake_cuda::api());
    test::checking_consumer consumer(cuda);
    std::deque<test::random_batch> expected;  // the stream refers to it: must not move
    {
      const auto loader =
          device_loader_of(*stored.run, options, {.no_device = no_device_rule::host},
                           device ? &fake_cuda::api() : nullptr);
      EXPECT_EQ(loader->memory_report().granted == memory_kind::cuda, device);
      for (const device_batch& found : loader->on(stream.get().value)) {
        const auto wanted = host->next();
        ASSERT_TRUE(wanted.has_value());
        expected.push_back(batch_of_host(*wanted));
        EXPECT_EQ(found.on_device(), device);
        EXPECT_EQ(found.step(), wanted->step());
        EXPECT_EQ(found.first_sample(), wanted->first_sample());
        EXPECT_EQ(found.max_seqlen(), wanted->max_seqlen());
        EXPECT_THAT(found.positions(), testing::ElementsAreArray(wanted->positions()));
        EXPECT_THAT(found.sources(), testing::ElementsAreArray(wanted->sources()));
        EXPECT_EQ(loader->consumed_samples(), host->consumed_samples());
        if (device) {
          consumer.use(found, expected.back(), stream.get().value);
          continue;
        }
        batch_work work;
        work.tokens = const_cast<std::int64_t*>(found.tokens());
        work.labels = const_cast<std::int64_t*>(found.labels());
        work.position_ids = const_cast<std::int64_t*>(found.position_ids());
        work.loss_mask = const_cast<float*>(found.loss_mask());
        work.cu_seqlens = const_cast<std::int32_t*>(found.cu_seqlens());
        EXPECT_EQ(test::difference(work, found.cu_seqlens_size(), expected.back().expected), "");
      }
      EXPECT_FALSE(host->next().has_value());
    }
    drain(fake_cuda::api(), stream.get().value);
    EXPECT_EQ(consumer.seen(), device ? static_cast<std::int64_t>(expected.size()) : 0);
    EXPECT_THAT(consumer.wrong(), IsEmpty());
    EXPECT_THAT(cuda.faults(), IsEmpty());
  }
}

// A program that may run without a device says so. Otherwise it would compute with pointers to the
// host's memory.
TEST(DeviceLoader, WantsADeviceUnlessToldOtherwise) {
  const stored_run stored(test::run_kind::instant, false);
  try {
    (void)device_loader_of(*stored.run, {.batch_size = 2}, {}, nullptr);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const config_error& e) {
    EXPECT_STREQ(e.what(),
                 "there is no CUDA device (this build is without CUDA): run where there is one, or "
                 "set no_device to no_device_rule::host to make the batches in host memory");
  }
}

// The state describes what next() has returned, no matter how far ahead the threads are.
TEST(DeviceLoader, ItsStateIsThatOfTheHostsLoader) {
  const stored_run stored(test::run_kind::instant, true);
  fake_cuda cuda;
  loader_options options;
  options.batch_size = 2;
  const auto host = test::loader_of(*stored.run, options);
  const auto loader = device_loader_of(*stored.run, options, {}, &fake_cuda::api());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(dataset::write_state(loader->state()), dataset::write_state(host->state()));
    (void)host->next();
    (void)loader->next(nullptr);
  }
  const std::string saved = dataset::write_state(loader->state());

  const auto other = device_loader_of(*stored.run, options, {}, &fake_cuda::api());
  (void)other->next(nullptr);
  EXPECT_THROW(other->load_state("{}"), error);
  EXPECT_EQ(other->consumed_samples(), 2);
  EXPECT_EQ(other->next(nullptr)->first_sample(), 2) << "a refused state changes nothing";
  const auto held = other->next(nullptr);
  other->load_state(saved);
  EXPECT_EQ(other->consumed_samples(), 10);
  EXPECT_EQ(other->next(nullptr)->first_sample(), 10);
  EXPECT_EQ(held->first_sample(), 4);
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

// A state of another run is refused before anything changes: the loader does not even try to make a
// second pipe, for which the device has no memory.
TEST(DeviceLoader, ARefusedStateLeavesThePipeAsItIs) {
  const stored_run stored(test::run_kind::instant, true);
  fake_cuda cuda;
  loader_options options;
  options.batch_size = 2;
  const auto loader = device_loader_of(*stored.run, options, {}, &fake_cuda::api());
  EXPECT_EQ(loader->next(nullptr)->first_sample(), 0);
  dataset::run_state other = loader->state();
  other.seed += 1;
  cuda.fail_call("cudaMalloc", 1, fake_cuda::out_of_memory);
  EXPECT_THROW(loader->load_state(other), config_error);
  cuda.fail_call(0, 0);
  EXPECT_EQ(loader->consumed_samples(), 2);
  EXPECT_EQ(loader->report().on_device, true);
  EXPECT_EQ(loader->next(nullptr)->first_sample(), 2);
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

// The state is valid, but the device has no memory for it. Each next() reports this until
// load_state() succeeds.
TEST(DeviceLoader, APipeThatCannotBeMadeAnewIsNoCrash) {
  const stored_run stored(test::run_kind::instant, true);
  fake_cuda cuda;
  loader_options options;
  options.batch_size = 2;
  const auto loader = device_loader_of(*stored.run, options, {}, &fake_cuda::api());
  EXPECT_EQ(loader->next(nullptr)->first_sample(), 0);
  dataset::run_state saved = loader->state();
  saved.consumed_samples = 10;
  cuda.fail_call("cudaMalloc", 1, fake_cuda::out_of_memory);
  EXPECT_THROW(loader->load_state(saved), cuda_error);
  for (int i = 0; i < 2; ++i) {
    try {
      (void)loader->next(nullptr);
      FAIL() << "nothing was thrown";
    } catch (const error& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("call load_state again"));
    }
  }
  EXPECT_THROW((void)loader->report(), error);
  loader->load_state(saved);
  EXPECT_EQ(loader->consumed_samples(), 10);
  EXPECT_EQ(loader->next(nullptr)->first_sample(), 10);
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

// A device loader uses only its own device. This includes the host slots: a rank on device 1 takes
// no resources on device 0.
TEST(DeviceLoader, HasAContextOnItsDeviceAlone) {
  const stored_run stored(test::run_kind::packed, true);
  fake_cuda cuda(1, 2);
  ASSERT_EQ(fake_cuda::api().use_device(1), 0);
  {
    loader_options options;
    options.batch_size = 2;
    const auto loader = device_loader_of(*stored.run, options, {.device = 1}, &fake_cuda::api());
    EXPECT_EQ(loader->memory_report().granted, memory_kind::cuda);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(loader->next(nullptr).has_value());
    loader->load_state(loader->state());
    EXPECT_TRUE(loader->next(nullptr).has_value());
  }
  EXPECT_EQ(cuda.contexts(), std::set<int>{1});
  EXPECT_THAT(cuda.faults(), IsEmpty());
  EXPECT_EQ(cuda.alive(), 0U);
  (void)fake_cuda::api().use_device(0);
}

// The threads of a loader run on the CPUs of the device's NUMA node, if nobody chose others.
TEST(DeviceLoader, RunsOnTheNodeOfTheDevice) {
  const std::vector<int> all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  const std::vector<int> of_node = {all.back()};
  const test::temp_folder sys;
  const auto pci = sys / "bus/pci/devices/0000:01:00.0";
  const auto node = sys / "devices/system/node/node1";
  std::filesystem::create_directories(pci);
  std::filesystem::create_directories(node);
  test::write_text(pci / "numa_node", "1\n");
  test::write_text(node / "cpulist", cpu_list_text(of_node) + "\n");

  const stored_run stored(test::run_kind::instant, false);
  const dataset::indexed_dataset data(stored.prefixes[0]);
  for (const bool chosen : {false, true}) {
    fake_cuda cuda;
    std::vector<int> filled_on;
    loader_options options{.batch_size = 1, .seq_len = 16, .threads = 1};
    if (chosen) options.cpus = {all.front()};
    options.reader = [&](const std::vector<data_file>& files) {
      return std::make_unique<test::faulty_reader>(std::make_unique<pread_reader>(files),
                                                   [&](std::int64_t n) {
                                                     if (n == 0) filled_on = allowed_cpus();
                                                   });
    };
    device_loader_options device;
    device.pool.files.sys = sys.path();
    device_loader loader(data, options, device, &fake_cuda::api());
    ASSERT_TRUE(loader.next(nullptr).has_value());
    EXPECT_EQ(filled_on, chosen ? std::vector<int>{all.front()} : of_node);
    std::string said;
    for (const grant& each : loader.report().threads)
      said += each.asked + ": " + each.granted + "\n";
    const std::string cpus = "CPUs " + cpu_list_text(of_node) + " for thread mr-device: yes\n";
    EXPECT_EQ(said, "NUMA node of device 0000:01:00.0: 1\nCPUs of NUMA node 1: yes\n" +
                        (chosen ? "" : cpus));
    const auto fill = loader.host().observe().threads;
    ASSERT_EQ(fill.size(), 1U);
    EXPECT_EQ(fill[0].granted, "yes");
  }
}

TEST(DeviceLoader, TakesADatasetAsItIs) {
  const stored_run stored(test::run_kind::instant, false);
  const dataset::indexed_dataset data(stored.prefixes[0]);
  fake_cuda cuda;
  std::int64_t batches = 0;
  device_loader loader(data, {.batch_size = 1, .seq_len = 16}, {}, &fake_cuda::api());
  for (const device_batch& batch : loader.on(nullptr)) {
    EXPECT_EQ(batch.seq_len(), 16);
    ++batches;
  }
  EXPECT_EQ(batches, loader.host().micro_batches());
  EXPECT_EQ(loader.report().batches, batches);
}

// The test runs on any machine: either a device is used, or the reason why there is none is
// reported.
TEST(DeviceLoader, RunsOnThisMachine) {
  const stored_run stored(test::run_kind::instant, false);
  const dataset::indexed_dataset data(stored.prefixes[0]);
  device_loader loader(data, {.batch_size = 1, .seq_len = 16}, {.no_device = no_device_rule::host});
  const auto batch = loader.next(nullptr);
  ASSERT_TRUE(batch.has_value());
  const pipe_report report = loader.report();
  EXPECT_EQ(batch->on_device(), report.on_device);
  EXPECT_FALSE(report.why.empty());
}

}  // namespace
}  // namespace millrace::loader::cuda
