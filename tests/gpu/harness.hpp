// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

/// A test framework of a few lines, because a machine with a GPU may have no other test framework.
namespace millrace::test {

/// Thrown by a test that fails.
struct gpu_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct gpu_skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Fails the test if `holds` is false.
inline void expect(bool holds, const std::string& what) {
  if (!holds) throw gpu_failure(what);
}

template <class Found, class Wanted>
void expect_equal(Found found, Wanted wanted, const std::string& what) {
  if (found == static_cast<Found>(wanted)) return;
  throw gpu_failure(what + ": expected " + std::to_string(wanted) + ", found " +
                    std::to_string(found));
}

/// Fails the test unless `body` throws an `Error` whose text contains `part`.
template <class Error, class Body>
void expect_error(const Body& body, const std::string& part) {
  try {
    body();
  } catch (const Error& e) {
    const std::string text = e.what();
    expect(text.find(part) != std::string::npos,
           "expected an error about '" + part + "', found: " + text);
    return;
  }
  throw gpu_failure("expected an error about '" + part + "', found none");
}

inline const loader::cuda::cuda_api& gpu_api() {
  return *loader::cuda::runtime_api();
}

/// Fails the test if `code`, the result of a CUDA call, is an error.
inline void must(int code, const char* call) {
  loader::cuda::check(gpu_api(), code, call);
}

/// A test. Each test runs in its own process. So if a test breaks the device, the other tests do
/// not fail.
struct gpu_test {
  const char* name;
  void (*run)();
  double limit_s = 60;
};

// Fields that the device makes (fields_test.cpp).
void makes_what_dataset_makes_on_the_host();
void makes_packed_rows();
void makes_the_parts_of_context_parallel_ranks();
// Arrays of the consumer (static_arrays_test.cpp).
void writes_batches_into_static_arrays();
void a_graph_reads_static_arrays();
// Other streams of the consumer, and waits with a time limit (streams_test.cpp).
void a_batch_may_be_used_on_another_stream();
void a_dlpack_consumer_may_bring_its_stream();
void a_wait_for_a_batch_may_give_up();
// Loaders (loader_test.cpp).
void a_loader_serves_its_dataset_from_page_locked_memory();
void a_consumer_may_use_the_default_stream();
void two_loaders_share_a_device();
void a_loader_leaves_other_devices_alone();
// Order of work, and destruction of batches and pipes (order_test.cpp).
void a_slow_consumer_finds_every_batch();
void a_slow_consumer_finds_every_large_batch();
void batches_may_be_destroyed_on_foreign_threads();
void a_pipe_may_end_at_any_time();
// CUDA graphs (capture_test.cpp).
void serves_while_another_thread_captures();
void refuses_a_stream_that_is_being_captured();
void survives_a_batch_that_ends_in_a_capture();
// DLPack (dlpack_test.cpp).
void a_tensor_outlives_the_pipe();
void a_tensor_may_be_used_on_two_streams();

}  // namespace millrace::test
