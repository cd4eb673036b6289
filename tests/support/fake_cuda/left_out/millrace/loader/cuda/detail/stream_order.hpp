// SPDX-License-Identifier: Apache-2.0
#pragma once

// Replaces the header of the same name in one test program. It has the same functions. A function
// does nothing if its call is in the place that MILLRACE_LEFT_OUT names as FILE:LINE. The program
// appends each place that calls a function to the file that MILLRACE_REACHED names.
// tests/property/removed_waits.py sets both variables.
#pragma GCC system_header  // for #include_next

#include <cstdlib>
#include <fstream>
#include <string>

#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

#define record true_record
#define wait true_wait
#define wait_on_host true_wait_on_host
#define drain true_drain
#define is_done true_is_done
#include_next <millrace/loader/cuda/detail/stream_order.hpp>
#undef record
#undef wait
#undef wait_on_host
#undef drain
#undef is_done

namespace millrace::test {

inline bool is_left_out(const std::string& file, int line) {
  const std::string place = file.substr(file.rfind('/') + 1) + ":" + std::to_string(line);
  if (const char* reached = std::getenv("MILLRACE_REACHED")) {
    std::ofstream(reached, std::ios::app) << place + "\n";
  }
  const char* left_out = std::getenv("MILLRACE_LEFT_OUT");
  return left_out != nullptr && place == left_out;
}

}  // namespace millrace::test

namespace millrace::loader::cuda {

inline void record(const cuda_api& api, event which, stream behind,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!test::is_left_out(file, line)) true_record(api, which, behind);
}

inline void wait(const cuda_api& api, stream waits, event which,
                 const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!test::is_left_out(file, line)) true_wait(api, waits, which);
}

inline void wait_on_host(const cuda_api& api, event which, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
  if (!test::is_left_out(file, line)) true_wait_on_host(api, which);
}

inline void drain(const cuda_api& api, stream which, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!test::is_left_out(file, line)) true_drain(api, which);
}

// If this query is left out, it returns true, as if there were nothing to wait for.
inline bool is_done(const cuda_api& api, event which, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  return test::is_left_out(file, line) || true_is_done(api, which);
}

}  // namespace millrace::loader::cuda
