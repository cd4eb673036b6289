// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/loader/cuda/detail/handles.hpp>
#include <millrace/loader/cuda/detail/output_layout.hpp>

#include "bench/gpu/device_clock.hpp"
#include "bench/gpu/spin.hpp"
#include "support/fake_cuda/random_batch.hpp"

namespace millrace::bench {

/// Measures the time of the loader's kernel: launches it many times for the same batch on the
/// device.
class kernel_clock {
 public:
  static constexpr int launches = 1000;  // so few that they fit in a stream's queue

  kernel_clock(const test::random_batch& batch, const loader::cuda::wanted_fields& fields)
      : api_(*loader::cuda::runtime_api()),
        outputs_(batch.layout, fields),
        stream_(loader::cuda::make_stream(api_)),
        slot_(loader::cuda::allocate_device(api_, batch.slot.size())),
        arrays_(loader::cuda::allocate_device(api_, outputs_.bytes())),
        sum_(loader::cuda::allocate_device(api_, sizeof(std::int64_t))),
        clock_(2) {
    const auto* from = static_cast<const std::byte*>(slot_.get().value);
    work_ = outputs_.work(static_cast<std::byte*>(arrays_.get().value), from, batch.layout,
                          batch.boundaries, batch.rules);
    must(cudaMemcpyAsync(slot_.get().value, batch.slot.data(), batch.slot.size(),
                         cudaMemcpyHostToDevice, on()),
         "cudaMemcpyAsync");
    must(cudaMemsetAsync(arrays_.get().value, 0, outputs_.bytes(), on()), "cudaMemsetAsync");
    must(plan_step(load::one_sm, &hold_), "plan_step");
    launch();
    must(run_nothing(on()), "kernel launch");
    clock_.wait(on());
  }

  void launch() { must(api_.launch_batch(work_, on()), "kernel launch"); }
  void wait() { clock_.wait(on()); }

  /// Returns by how many microseconds the loader's kernel takes longer than an empty kernel. Both
  /// times are means over `launches` launches without gaps between them.
  double round() {
    const double with = mean_us([&] { launch(); });
    const double without = mean_us([&] { must(run_nothing(on()), "kernel launch"); });
    return with - without;
  }

 private:
  cudaStream_t on() const { return stream_.get().value; }

  // Returns the mean time of a launch on the device, in microseconds. First enqueues a kernel that
  // takes 10 ms, so that all launches are queued before the first of them runs. Otherwise, the time
  // that the host needs to launch kernels would also be measured.
  template <class Launch>
  double mean_us(const Launch& launch_one) {
    constexpr std::int64_t hold_ns = 10'000'000;
    const auto* zeros = static_cast<const std::int64_t*>(arrays_.get().value);
    must(run_step(hold_, nullptr, zeros, 1, 1, static_cast<std::int64_t*>(sum_.get().value),
                  hold_ns, on()),
         "kernel launch");
    clock_.clear();
    clock_.mark(on());
    for (int i = 0; i < launches; ++i) launch_one();
    clock_.mark(on());
    return clock_.read(on()).at(0) / launches;
  }

  const loader::cuda::cuda_api& api_;
  loader::cuda::output_layout outputs_;
  loader::cuda::owned_stream stream_;
  loader::cuda::device_memory slot_;
  loader::cuda::device_memory arrays_;
  loader::cuda::device_memory sum_;
  device_clock clock_;
  loader::cuda::batch_work work_;
  step_kernel hold_;
};

}  // namespace millrace::bench
