// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/device_loader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/memory/cpu_list.hpp>
#include <millrace/loader/detail/ranks/rank_role.hpp>
#include <millrace/loader/loader_report.hpp>

#include "support/config_refusal.hpp"
#include "support/context_places.hpp"
#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/faulty_reader.hpp"
#include "support/loader_runs.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/odd_mask.hpp"

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

/// Converts a batch of the host loader, so that it can be compared.
test::random_batch batch_of_host(const batch& from) {
  const auto all = [](auto span) { return std::vector(span.begin(), span.end()); };
  test::random_batch result{from.layout(), {}, 0, {}, {}};
  result.expected = {all(from.tokens()),    all(from.labels()),     all(from.position_ids()),
                     all(from.loss_mask()), all(from.cu_seqlens()), from.max_seqlen()};
  const std::int64_t seq_len = from.layout().seq_len();
  for (std::int64_t row = 0; row < from.layout().rows(); ++row) {
    const std::int32_t first = from.boundary_begin()[static_cast<std::size_t>(row)];
    for (std::int32_t i = 0; i < seq_len; ++i) {
      auto d = static_cast<std::size_t>(first) + 1;  // index of the next boundary after token i
      while (from.boundaries()[d] <= i) ++d;
      const std::int32_t end = from.layout().packed() ? from.document_ends()[d]
                                                      : from.real()[static_cast<std::size_t>(row)];
      const auto number = static_cast<std::int32_t>(d) - first;
      result.expected.segment_ids.push_back(i < end ? number : 0);
    }
    if (!from.layout().packed()) continue;
    std::vector<std::int32_t>& unpadded = result.expected.unpadded;
    if (row == 0) unpadded.push_back(0);
    const std::int32_t last = from.boundary_begin()[static_cast<std::size_t>(row) + 1];
    for (auto d = static_cast<std::size_t>(first) + 1; d < static_cast<std::size_t>(last); ++d) {
      unpadded.push_back(unpadded.back() + from.document_ends()[d] - from.boundaries()[d - 1]);
    }
  }
  return result;
}

/// Three datasets in a temporary folder, and a run that uses them.
struct stored_run {
  stored_run(test::run_kind kind, bool blend, bool last_token_as_label = false) {
    request.kind = kind;
    request.blend = blend;
    request.seq_len = 24;
    request.samples = 60;
    request.pad_documents_to = 2;
    request.last_token_as_label = last_token_as_label;
    run.emplace(test::run_of(request, prefixes));
  }
  test::temp_folder folder{test::quick_folder()};
  std::vector<std::filesystem::path> prefixes = test::store_three(folder, 7);
  test::run_request request;
  std::optional<test::any_run> run;
};

// Tests every order, with plain and packed rows, on a device with random delays and also without a
// device.
TEST(DeviceLoader, ServesWhatTheHostsLoaderServes) {
  std::mt19937_64 random(test::seed(77));
  for (int round = 0; round < 24; ++round) {
    const stored_run stored(static_cast<test::run_kind>(round % 3), round % 2 == 0, round % 9 == 5);
    SCOPED_TRACE(testing::Message() << "round " << round << ": " << name_of(stored.request.kind));
    if (round % 5 < 2) test::write_odd_mask(stored.prefixes[0]);
    loader_options options;
    options.batch_size = 3;
    options.masks = round % 3 == 0 ? mask_alignment::input : mask_alignment::label;
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
    std::deque<test::random_batch> expected;  // a deque, because the stream refers to its elements
    {
      device_loader_options on_device;
      on_device.no_device = no_device_rule::host;
      on_device.fields.segment_ids = random() % 2 == 0;
      on_device.fields.cu_seqlens = !on_device.fields.segment_ids || random() % 2 == 0;
      on_device.fields.cu_seqlens_padded =
          stored.request.kind == test::run_kind::packed && random() % 2 == 0;
      on_device.fields.ids = random() % 2 == 0 ? id_width::i32 : id_width::i64;
      const auto loader =
          device_loader_of(*stored.run, options, on_device, device ? &fake_cuda::api() : nullptr);
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
        const batch_work work = test::arrays_of(found);
        EXPECT_EQ(test::difference(work, found.cu_seqlens_used(), expected.back().expected), "");
      }
      EXPECT_FALSE(host->next().has_value());
    }
    drain(fake_cuda::api(), stream.get().value);
    EXPECT_EQ(consumer.seen(), device ? static_cast<std::int64_t>(expected.size()) : 0);
    EXPECT_THAT(consumer.wrong(), IsEmpty());
    EXPECT_THAT(cuda.faults(), IsEmpty());
  }
}

/// Returns the part of a whole batch that a context-parallel rank must get.
test::random_batch part_of(const test::random_batch& whole, const batch& from,
                           const loader_options& options) {
  test::random_batch part = whole;
  test::expected_fields& out = part.expected;
  for (auto* array : {&out.tokens, &out.labels, &out.position_ids}) array->clear();
  out.loss_mask.clear();
  out.segment_ids.clear();
  for (std::int64_t row = 0; row < from.layout().rows(); ++row) {
    std::vector<std::int64_t> ends = {from.layout().seq_len()};
    if (from.layout().packed()) {
      const auto begin = from.boundary_begin().subspan(static_cast<std::size_t>(row));
      ends.assign(from.boundaries().begin() + begin[0] + 1, from.boundaries().begin() + begin[1]);
    }
    for (const std::int64_t place :
         test::places_of_rank(ends, options.context_parallel, options.cp_rank)) {
      const auto at = static_cast<std::size_t>(row * from.layout().seq_len() + place);
      out.tokens.push_back(whole.expected.tokens[at]);
      out.labels.push_back(whole.expected.labels[at]);
      out.position_ids.push_back(whole.expected.position_ids[at]);
      out.loss_mask.push_back(whole.expected.loss_mask[at]);
      out.segment_ids.push_back(whole.expected.segment_ids[at]);
    }
  }
  return part;
}

// A loader of whole rows serves some batches. Each context-parallel rank must get its part of them,
// on a device with random delays and also without a device.
TEST(DeviceLoader, ServesContextParallelRanksTheirPart) {
  std::mt19937_64 random(test::seed(78));
  for (int round = 0; round < 36; ++round) {
    stored_run stored(static_cast<test::run_kind>(round % 3), round % 2 == 0, round % 9 == 5);
    const bool packed = stored.request.kind == test::run_kind::packed;
    loader_options options;
    options.batch_size = 3;
    options.context_parallel = 2 + round / 3 % 2;
    options.cp_rank = static_cast<std::int64_t>(random() % 2);
    stored.request.pad_documents_to = 2 * options.context_parallel;
    stored.run.emplace(test::run_of(stored.request, stored.prefixes));
    options.field_rules.eod = static_cast<std::int64_t>(random() % 300);
    options.field_rules.reset_position_ids = random() % 2 == 0;
    options.field_rules.eod_mask_loss = random() % 2 == 0;
    device_loader_options on_device;
    on_device.no_device = no_device_rule::host;
    on_device.positions_at_boundaries = random() % 3 == 0;
    on_device.fields.cu_seqlens = packed;
    on_device.fields.segment_ids = random() % 2 == 0;
    on_device.fields.ids = random() % 2 == 0 ? id_width::i32 : id_width::i64;
    loader_options whole = options;
    whole.fields = test::all_fields;
    whole.context_parallel = 1;
    whole.cp_rank = 0;
    whole.positions_at_boundaries = on_device.positions_at_boundaries;
    const auto host = test::loader_of(*stored.run, whole);
    SCOPED_TRACE(testing::Message()
                 << "round " << round << ": " << name_of(stored.request.kind) << ", rank "
                 << options.cp_rank << " of " << options.context_parallel);

    fake_cuda cuda(random());
    const bool device = round % 4 != 3;
    const owned_stream stream = make_stream(fake_cuda::api());
    test::checking_consumer consumer(cuda);
    std::deque<test::random_batch> expected;  // a deque, because the stream refers to its elements
    {
      const auto loader =
          device_loader_of(*stored.run, options, on_device, device ? &fake_cuda::api() : nullptr);
      for (const device_batch& found : loader->on(stream.get().value)) {
        const auto wanted = host->next();
        ASSERT_TRUE(wanted.has_value());
        expected.push_back(part_of(batch_of_host(*wanted), *wanted, options));
        EXPECT_EQ(found.seq_len() * options.context_parallel, wanted->layout().seq_len());
        if (packed) {
          EXPECT_EQ(found.max_seqlen(), wanted->max_seqlen());
        }
        EXPECT_THAT(found.positions(), testing::ElementsAreArray(wanted->positions()));
        EXPECT_EQ(dataset::write_state(loader->state()), dataset::write_state(host->state()));
        if (device) {
          consumer.use(found, expected.back(), stream.get().value);
          continue;
        }
        const batch_work work = test::arrays_of(found);
        EXPECT_EQ(test::difference(work, found.cu_seqlens_used(), expected.back().expected), "");
      }
      EXPECT_FALSE(host->next().has_value());
    }
    drain(fake_cuda::api(), stream.get().value);
    EXPECT_EQ(consumer.seen(), device ? static_cast<std::int64_t>(expected.size()) : 0);
    EXPECT_THAT(consumer.wrong(), IsEmpty());
    EXPECT_THAT(cuda.faults(), IsEmpty());
  }
}

// A rank copies only its own tokens. This takes little more than 2 bytes per token, whether or not
// position ids restart.
TEST(DeviceLoader, CopiesOnlyTheRanksPart) {
  const test::temp_folder folder{test::quick_folder()};
  test::documents_of<std::uint16_t> documents(1);
  documents[0].push_back(std::vector<std::uint16_t>(4096 * 16 + 1, 5));
  test::write_dataset<std::uint16_t>(folder / "data", documents);
  const dataset::indexed_dataset data(folder / "data");
  fake_cuda cuda;
  for (const std::int64_t cp : {1, 2, 4}) {
    for (const bool reset : {false, true}) {
      loader_options options = {.batch_size = 8, .seq_len = 4096, .context_parallel = cp};
      options.field_rules.reset_position_ids = reset;
      options.field_rules.eod = 9;
      device_loader_options on_device;
      on_device.fields.cu_seqlens = false;
      device_loader loader(data, options, on_device, &fake_cuda::api());
      while (loader.next(nullptr)) {
      }
      const pipe_report report = loader.report();
      EXPECT_EQ(report.tokens, std::int64_t{2} * 8 * 4096 / cp);
      const double each =
          static_cast<double>(report.bytes_to_device) / static_cast<double>(report.tokens);
      EXPECT_LE(each, cp == 1 ? 2.01 : cp == 2 ? 2.04 : 2.08) << cp;
    }
  }
}

// The constructor of the loader must refuse documents that context parallelism cannot divide.
TEST(DeviceLoader, RefusesDocumentsThatRanksCannotDivide) {
  const stored_run plain(test::run_kind::instant, false);
  // The documents are padded to a multiple of 2 tokens.
  const stored_run packed(test::run_kind::packed, false);
  fake_cuda cuda;
  loader_options options;
  options.context_parallel = 2;
  const auto refusal = [&](const stored_run& stored) {
    return test::config_refusal(
        [&] { (void)device_loader_of(*stored.run, options, {}, &fake_cuda::api()); });
  };
  EXPECT_THAT(refusal(packed), testing::HasSubstr("pad_documents_to is 2, expected a multiple of "
                                                  "4: cu_seqlens with context parallelism of 2"));
  EXPECT_THAT(refusal(plain),
              testing::StartsWith("fields.cu_seqlens is true with a context_parallel of 2, but the "
                                  "rows are not packed"));
}

// A program must say that it may run without a device. Otherwise, it would use pointers to host
// memory as device pointers.
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

// The state describes the batches that next() has returned, no matter how far ahead the threads
// are.
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

// The loader must refuse the state of another run before anything changes. It must not even try to
// create a second pipe. The device would not have the memory for it.
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

// The state is valid, but the device lacks the memory for a new pipe. Each next() must report this
// until load_state() succeeds.
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

// A device loader must use only its own device. This includes the host slots: a rank on device 1
// must not take any resources on device 0.
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

/// A folder like /sys, in which the fake device is on a NUMA node with these CPUs.
struct machine_with_node {
  explicit machine_with_node(const std::vector<int>& cpus) {
    const auto pci = folder / "bus/pci/devices/0000:01:00.0";
    const auto node = folder / "devices/system/node/node1";
    std::filesystem::create_directories(pci);
    std::filesystem::create_directories(node);
    test::write_text(pci / "numa_node", "1\n");
    test::write_text(node / "cpulist", cpu_list_text(cpus) + "\n");
  }
  test::temp_folder folder;
};

// If the options name no CPUs, the threads of a loader run on the CPUs of the device's NUMA node.
TEST(DeviceLoader, RunsOnTheNodeOfTheDevice) {
  const std::vector<int> all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  const std::vector<int> of_node = {all.back()};
  const machine_with_node sys(of_node);
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
    device.pool.files.sys = sys.folder.path();
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

/// Returns the CPUs of each thread of this process whose name begins with mr-io, by thread id.
std::map<int, std::vector<int>> cpus_of_reading_threads() {
  std::map<int, std::vector<int>> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const int id = std::stoi(task.path().filename().string());
    if (!read_system_file(task.path() / "comm").value_or("").starts_with("mr-io")) continue;
    ::cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(id, sizeof(set), &set) != 0) continue;  // the thread has ended
    std::vector<int>& cpus = found[id];
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(static_cast<int>(cpu));
    }
  }
  return found;
}

// The threads that read files for a loader also run on the node of its device. So loaders whose
// devices are on different nodes do not share threads.
TEST(DeviceLoader, ReadsOnTheNodeOfTheDevice) {
  const std::vector<int> all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  const stored_run stored(test::run_kind::instant, false);
  const fake_cuda cuda;
  loader_options options{.batch_size = 1, .seq_len = 16};
  options.io.back_end = "mmap";
  options.io.reader.advice = map_advice::resident;  // a thread reads the whole file at first
  std::deque<dataset::indexed_dataset> datasets;
  std::deque<device_loader> loaders;
  for (const int cpu : {all.front(), all.back()}) {
    const std::vector<int> of_node = {cpu};
    const machine_with_node sys(of_node);
    device_loader_options device;
    device.pool.files.sys = sys.folder.path();
    // A file that is in memory is not read again, so each loader has its own dataset.
    const auto& data = datasets.emplace_back(stored.prefixes[datasets.size()]);
    const auto before = cpus_of_reading_threads();
    device_loader& loader = loaders.emplace_back(data, options, device, &fake_cuda::api());
    ASSERT_TRUE(loader.next(nullptr).has_value());
    // The threads may not have set their names and CPUs yet.
    std::map<int, std::vector<int>> found;
    for (int tries = 0; tries < 500; ++tries) {
      found = cpus_of_reading_threads();
      for (const auto& each : before) found.erase(each.first);
      const auto is_there = [&](const auto& each) { return each.second == of_node; };
      if (!found.empty() && std::ranges::all_of(found, is_there)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_FALSE(found.empty()) << "no thread reads";
    for (const auto& each : found) EXPECT_EQ(each.second, of_node);
  }
}

// The documentation of `held` says how many slots there are, and that 8 batches may be held at once
// without reducing the look-ahead.
TEST(DeviceLoader, HoldsEightBatchesUnlessToldOtherwise) {
  const device_loader_options usual;
  EXPECT_EQ(usual.held, 8);
  EXPECT_EQ(usual.held, loader_options{}.held);
  EXPECT_EQ(usual.held, held_by_stage(0, 8)) << "enough for Megatron's 1F1B with 8 stages";
  const stored_run stored(test::run_kind::instant, false);
  const dataset::indexed_dataset data(stored.prefixes[0]);
  const fake_cuda cuda;
  device_loader loader(data, {.batch_size = 1, .seq_len = 16}, usual, &fake_cuda::api());
  const std::int64_t slots = usual.look_ahead + usual.held + 1;
  ASSERT_GT(loader.host().micro_batches(), slots);
  EXPECT_EQ(loader.report().slots, static_cast<std::size_t>(slots));
  std::vector<device_batch> held;
  for (std::int64_t i = 0; i < usual.held; ++i) {
    auto batch = loader.next(nullptr);
    ASSERT_TRUE(batch.has_value());
    held.push_back(std::move(*batch));
  }
  // The look-ahead is still complete: that many further batches, and one that is being filled.
  for (int tries = 0; loader.report().batches < slots && tries < 1000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(loader.report().batches, slots);
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

// This test runs on any machine. The loader either uses a device or reports why there is none.
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
