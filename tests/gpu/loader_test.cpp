// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/loader/cuda/device_loader.hpp>

#include "bench/gpu/made_data.hpp"
#include "gpu/device_sums.hpp"
#include "gpu/driver.hpp"
#include "gpu/harness.hpp"

namespace millrace::test {
namespace {

using loader::cuda::device_loader;

/// A small dataset, which is deleted at the end of the test.
class made_dataset {
 public:
  explicit made_dataset(bool wide = false)
      : folder_(std::filesystem::temp_directory_path() /
                ("millrace_gpu_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    bench::write_made_data(prefix(), 300'000, wide);
  }
  made_dataset(const made_dataset&) = delete;
  made_dataset& operator=(const made_dataset&) = delete;
  ~made_dataset() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::filesystem::path prefix() const { return folder_ / "made"; }

 private:
  std::filesystem::path folder_;
};

loader::loader_options usual_options() {
  loader::loader_options options{.batch_size = 4, .seq_len = 512, .threads = 2};
  options.field_rules.eod = bench::made_eod;
  options.field_rules.eod_mask_loss = true;
  options.field_rules.reset_position_ids = true;
  return options;
}

template <class T>
std::vector<T> copy_of(const T* array, std::int64_t count) {
  return {array, array + count};
}

// Returns the checksums of the batches that a loader without a device serves. Functions of
// `dataset` make these batches.
std::vector<std::uint64_t> sums_on_host(const dataset::indexed_dataset& data) {
  device_loader loader(data, usual_options(), {.no_device = loader::cuda::no_device_rule::host},
                       nullptr);
  std::vector<std::uint64_t> sums;
  for (const auto& batch : loader.on(nullptr)) {
    expect(!batch.on_device(), "a batch of the host is on a device");
    const std::int64_t elements = batch.rows() * batch.seq_len();
    expected_fields fields;
    fields.tokens = copy_of(batch.tokens(), elements);
    fields.labels = copy_of(batch.labels(), elements);
    fields.position_ids = copy_of(batch.position_ids(), elements);
    fields.loss_mask = copy_of(batch.loss_mask(), elements);
    fields.cu_seqlens = copy_of(batch.cu_seqlens(), batch.cu_seqlens_size());
    sums.push_back(sum_of(fields));
  }
  return sums;
}

void serve_on(loader::cuda::stream on, bool wide) {
  const made_dataset made(wide);
  const dataset::indexed_dataset data(made.prefix());
  const std::vector<std::uint64_t> wanted = sums_on_host(data);
  expect(wanted.size() > 100, "the dataset has too few batches for this test");
  device_sums sums(wanted.size());
  device_loader loader(data, usual_options());
  expect(loader.memory_report().granted == loader::memory_kind::cuda,
         std::string("the memory of the host's slots is '") +
             name_of(loader.memory_report().granted) + "', expected 'cuda'");
  for (const auto& batch : loader.on(on)) sums.add(batch, 20'000, on);
  sums.expect_sums(wanted, on);
}

bool has_context(int device) {
  static const auto state =
      driver_function<CUresult (*)(CUdevice, unsigned*, int*)>("cuDevicePrimaryCtxGetState");
  unsigned flags = 0;
  int active = 0;
  expect(state != nullptr && state(device, &flags, &active) == CUDA_SUCCESS,
         "cuDevicePrimaryCtxGetState failed");
  return active != 0;
}

}  // namespace

void a_loader_serves_its_dataset_from_page_locked_memory() {
  const auto stream = gpu_stream();
  for (const bool wide : {false, true}) serve_on(stream.get().value, wide);
}

void a_consumer_may_use_the_default_stream() {
  serve_on(nullptr, false);
}

void two_loaders_share_a_device() {
  const made_dataset made;
  const dataset::indexed_dataset data(made.prefix());
  const std::vector<std::uint64_t> wanted = sums_on_host(data);
  const auto one = gpu_stream();
  const auto two = gpu_stream();
  device_sums sums_of_one(wanted.size()), sums_of_two(wanted.size());
  device_loader first(data, usual_options()), second(data, usual_options());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto of_first = first.next(one.get().value);
    const auto of_second = second.next(two.get().value);
    expect(of_first && of_second, "a loader ended early");
    sums_of_one.add(*of_first, 30'000, one.get().value);
    sums_of_two.add(*of_second, 5'000, two.get().value);
  }
  sums_of_one.expect_sums(wanted, one.get().value);
  sums_of_two.expect_sums(wanted, two.get().value);
}

// Every rank of a machine sees all devices. If a rank created contexts on devices that it does not
// use, each device would lose hundreds of megabytes of memory.
void a_loader_leaves_other_devices_alone() {
  int devices = 0;
  must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (devices < 2) throw gpu_skip("there is one device");
  const int mine = devices - 1;
  must(cudaSetDevice(mine), "cudaSetDevice");
  {
    const made_dataset made;
    const dataset::indexed_dataset data(made.prefix());
    const auto stream = gpu_stream();
    device_sums sums(1000);
    device_loader loader(data, usual_options(), {.device = mine});
    while (auto batch = loader.next(stream.get().value)) {
      sums.add(*batch, 10'000, stream.get().value);
      std::thread([&batch] { const auto ended = std::move(*batch); }).join();
    }
    loader::cuda::drain(gpu_api(), stream.get().value);
  }
  for (int device = 0; device < mine; ++device) {
    expect(!has_context(device), "there is a context on device " + std::to_string(device));
  }
  expect(has_context(mine), "there is no context on the loader's device");
}

}  // namespace millrace::test
