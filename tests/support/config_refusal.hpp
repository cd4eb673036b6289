// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/error.hpp>

namespace millrace::test {

/// What `attempt` says when it refuses with a config_error; "accepted" where it does not.
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
