// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/error.hpp>

namespace millrace::test {

/// Returns the message of the `config_error` that `attempt` throws, or "accepted" if it throws
/// nothing.
template <class F>
std::string config_refusal(const F& attempt) {
  try {
    (void)attempt();
  } catch (const config_error& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace millrace::test
