// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>

namespace millrace::loader::cuda {

/// A CUDA runtime call failed, or reported that an earlier operation on the device failed.
class MILLRACE_EXPORT cuda_error : public error {
 public:
  /// @param call  a string literal that names the failed call, e.g. "cudaMemcpyAsync"
  /// @param code  the `cudaError_t` that the call returned
  /// @param name  the name of the code, e.g. "cudaErrorIllegalAddress"
  cuda_error(const char* call, int code, const std::string& name, const std::string& text)
      : error(std::string(call) + ": " + name + " (" + std::to_string(code) + "): " + text),
        call_(call),
        code_(code),
        name_(name) {}

  const char* call() const noexcept { return call_; }
  int code() const noexcept { return code_; }
  const std::string& name() const noexcept { return name_; }

 private:
  const char* call_;
  int code_;
  std::string name_;
};

namespace detail {

inline std::string text_or(const char* text, const char* otherwise) {
  return text != nullptr ? text : otherwise;
}

}  // namespace detail

/// Returns the error of a failed call. Clears the error in the runtime, so that a later check in
/// other code does not report it again.
inline cuda_error taken_error(const cuda_api& api, int code, const char* call) {
  (void)api.last_error();
  return {call, code, detail::text_or(api.error_name(code), "unknown error"),
          detail::text_or(api.error_text(code), "no text")};
}

/// @throws cuda_error  code is not 0
inline void check(const cuda_api& api, int code, const char* call) {
  if (code != 0) throw taken_error(api, code, call);
}

}  // namespace millrace::loader::cuda
