// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

#include <millrace/loader/cuda/detail/cuda_api.hpp>

#include "support/fake_cuda/fake_runtime.hpp"

namespace millrace::test {

/// Each function of the table calls the fake runtime that exists at the time of the call.
inline const loader::cuda::cuda_api& fake_runtime::api() {
  using self = fake_runtime;
  using held = lock_type;
  using bytes = std::size_t;
  static const loader::cuda::cuda_api table = {
      .version = runtime_version,
      .architectures = "80 90 100",
      .driver_version =
          [](int* version) {
            return make([&](self& s, held&) { return s.driver_version(version); });
          },
      .device_count =
          [](int* count) { return make([&](self& s, held&) { return s.count_devices(count); }); },
      .use_device =
          [](int device) { return make([&](self& s, held&) { return s.use_device(device); }); },
      .push_device =
          [](int device) { return make([&](self& s, held&) { return s.push_device(device); }); },
      .pop_device = [] { return make([&](self& s, held&) { return s.pop_device(); }); },
      .pci_bus_id =
          [](char* text, int size, int) {
            if (size < 13) return int{invalid_value};
            std::memcpy(text, "0000:01:00.0", 13);
            return 0;
          },
      .compute_capability =
          [](int* capability, int) {
            return make([&](self& s, held&) { return s.compute_capability(capability); });
          },
      .allocate =
          [](void** memory, bytes size) {
            return make(
                [&](self& s, held&) { return s.allocate("cudaMalloc", memory, size, false, 0); });
          },
      .free =
          [](void* memory) {
            return make([&](self& s, held&) { return s.release("cudaFree", memory, false); });
          },
      .allocate_pinned =
          [](void** memory, bytes size, unsigned flags) {
            return make([&](self& s, held&) {
              return s.allocate("cudaHostAlloc", memory, size, true, flags);
            });
          },
      .free_pinned =
          [](void* memory) {
            return make([&](self& s, held&) { return s.release("cudaFreeHost", memory, true); });
          },
      .priority_range =
          [](int* lowest, int* highest) {
            return make([&](self& s, held&) { return s.priority_range(lowest, highest); });
          },
      .create_stream =
          [](stream* made, unsigned flags, int priority) {
            return make([&](self& s, held&) { return s.make_stream(made, flags, priority); });
          },
      .destroy_stream =
          [](stream which) { return make([&](self& s, held&) { return s.end_stream(which); }); },
      .synchronize_stream =
          [](stream which) { return make([&](self& s, held& h) { return s.drain(which, h); }); },
      .capture_status =
          [](stream which, int* status) {
            return make([&](self& s, held&) { return s.capture_status(which, status); });
          },
      .exchange_capture_mode =
          [](int* mode) {
            return make([&](self& s, held&) { return s.exchange_capture_mode(mode); });
          },
      .create_event =
          [](event* made, unsigned flags) {
            return make([&](self& s, held&) { return s.make_event(made, flags); });
          },
      .destroy_event =
          [](event which) { return make([&](self& s, held&) { return s.end_event(which); }); },
      .record_event =
          [](event which, stream behind) {
            return make([&](self& s, held&) { return s.record(which, behind); });
          },
      .synchronize_event =
          [](event which) {
            return make([&](self& s, held& h) { return s.wait_on_host(which, h); });
          },
      .query_event =
          [](event which) { return make([&](self& s, held&) { return s.query_event(which); }); },
      .wait_event =
          [](stream waits, event which) {
            return make([&](self& s, held&) { return s.wait(waits, which); });
          },
      .copy_to_device =
          [](void* to, const void* from, bytes size, stream on) {
            return make([&](self& s, held&) { return s.copy(to, from, size, on, true); });
          },
      .copy_to_host =
          [](void* to, const void* from, bytes size, stream on) {
            return make([&](self& s, held&) { return s.copy(to, from, size, on, false); });
          },
      .memory_device =
          [](const void* memory, int* device) {
            return make([&](self& s, held&) { return s.memory_device(memory, device); });
          },
      .launch_batch =
          [](const loader::cuda::batch_work& work, stream on) {
            return make([&](self& s, held& h) { return s.launch(work, on, h); });
          },
      .launch_copies =
          [](const loader::cuda::array_copies& copies, stream on) {
            return make([&](self& s, held& h) { return s.launch_copies(copies, on, h); });
          },
      .find_kernels = [] { return make([](self& s, held& h) { return s.find_kernels(h); }); },
      .last_error =
          [] { return make([](self& s, held&) { return s.log_.take_error(s.world_.broken); }); },
      .error_name =
          [](int code) { return code == no_driver ? "cudaErrorInsufficientDriver" : "fakeError"; },
      .error_text = [](int) { return "injected by a test"; },
  };
  return table;
}

}  // namespace millrace::test
